// An ONNX file of any bytes: reading and import, with every open dimension bound to 2.
#include <map>

#include "ridge/graph/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model =
      ridge::OnnxModel::Parse({reinterpret_cast<const char*>(data), size}, "fuzz.onnx");
  if (!model.ok()) return 0;
  ridge::OnnxImportOptions options;
  for (const std::string& name : ridge::OpenOnnxDims(*model, {})) options.dims[name] = 2;
  const auto imported = ridge::ImportOnnx(*model, options);
  options.training = true;
  const auto for_training = ridge::ImportOnnx(*model, options);
  return 0;
}
