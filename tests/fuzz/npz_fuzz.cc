// A zip archive of numpy arrays, of any bytes.
#include "ridge/data/npz.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  const auto arrays = ridge::ReadNpz(file.path());
  if (!arrays.ok()) return 0;
  for (const auto& [name, tensor] : *arrays) {
    if (tensor.elements() > 0) tensor.at(tensor.elements() - 1);
  }
  return 0;
}
