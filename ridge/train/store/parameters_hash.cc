#include "ridge/train/store/parameters_hash.h"

#include "ridge/core/sha256.h"

namespace ridge {

Result<std::string> HashParameters(Executor& executor) {
  const CheckpointTensors tensors = CollectTensors(executor);  // in byte order of names
  Sha256 hash;
  const auto add = [&](const PersistentTensor& tensor) -> Status {
    RIDGE_ASSIGN_OR_RETURN(const void* data, tensor.Read());
    hash.Add(data, tensor.type.bytes());
    return Status();
  };
  for (const PersistentTensor& param : tensors.parameters) RIDGE_RETURN_IF_ERROR(add(param));
  for (const PersistentTensor& state : tensors.state) {
    if (executor.FindPersistent(state.name)->role != ValueRole::kOptimizer)
      RIDGE_RETURN_IF_ERROR(add(state));
  }
  return hash.Hex();
}

}  // namespace ridge
