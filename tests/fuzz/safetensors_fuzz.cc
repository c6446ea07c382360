// A safetensors file of any bytes: its header, and every tensor it promises.
#include "ridge/core/safetensors.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  const auto opened = ridge::SafetensorsFile::Open(file.path());
  if (!opened.ok()) return 0;
  for (const ridge::SafetensorsEntry& entry : opened->entries()) {
    const auto tensor = opened->Load(entry.name);
    if (tensor.ok() && tensor->elements() > 0) tensor->at(tensor->elements() - 1);
  }
  return 0;
}
