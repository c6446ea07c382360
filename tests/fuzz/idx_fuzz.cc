// An IDX file of any bytes, plain or gzip.
#include "ridge/data/idx.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  const auto tensor = ridge::ReadIdx(file.path());
  if (tensor.ok() && tensor->elements() > 0) tensor->at(tensor->elements() - 1);
  return 0;
}
