// An ONNX file: reading and import, with every open dimension bound to 2.
//
// Half of the inputs are bytes changed blindly, half are models changed by their meaning.
#include <map>

#include "ridge/onnx/import/import.h"
#include "tests/fuzz/onnx_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

void Import(const ridge::OnnxModel& model, bool training) {
  ridge::OnnxImportOptions options;
  options.training = training;
  options.max_unrolled_nodes = 2'000;  // the caps are reached soon, and loops do not take the time
  options.fold_work = int64_t{1} << 20;
  for (const std::string& name : ridge::OpenOnnxDims(model, {})) options.dims[name] = 2;
  const auto imported = ridge::ImportOnnx(model, options);
  RIDGE_CHECK(imported.ok() || imported.status().code() != ridge::ErrorCode::kInternal,
              imported.status().message());
}

// 0 when the message does not fit.
size_t Store(const onnx::ModelProto& model, uint8_t* data, size_t max_size) {
  const size_t size = model.ByteSizeLong();
  if (size > max_size || !model.SerializeToArray(data, static_cast<int>(size))) return 0;
  return size;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  onnx::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  ridge::OnnxMutator(seed).Mutate(model);
  const size_t stored = Store(model, data, max_size);
  return stored > 0 ? stored : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t max_size,
                                            unsigned seed) {
  onnx::ModelProto model, second;
  if (!model.ParseFromArray(data, static_cast<int>(size)) ||
      !second.ParseFromArray(other, static_cast<int>(other_size)))
    return 0;
  ridge::OnnxMutator(seed).Splice(second, model);
  return Store(model, out, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model =
      ridge::OnnxModel::Parse({reinterpret_cast<const char*>(data), size}, "fuzz.onnx");
  if (!model.ok()) return 0;
  Import(*model, /*training=*/false);
  Import(*model, /*training=*/true);
  return 0;
}
