#include "ridge/train/store/parameters_hash.h"

#include "ridge/core/sha256.h"

namespace ridge {

Result<std::string> HashParameters(Executor& executor, WholeVariables* wholes) {
  const CheckpointTensors tensors = CollectTensors(executor, wholes);  // in byte order of names
  Sha256 hash;
  const auto add = [&](const PersistentTensor& tensor) {
    return tensor.Read([&](const void* data, int64_t bytes) {
      hash.Add(data, bytes);
      return Status();
    });
  };
  for (const PersistentTensor& param : tensors.parameters) RIDGE_RETURN_IF_ERROR(add(param));
  for (const PersistentTensor& state : tensors.state) {
    if (executor.FindPersistent(state.name)->role != ValueRole::kOptimizer)
      RIDGE_RETURN_IF_ERROR(add(state));
  }
  return hash.Hex();
}

}  // namespace ridge
