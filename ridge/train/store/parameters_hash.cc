#include "ridge/train/store/parameters_hash.h"

#include "ridge/core/sha256.h"

namespace ridge {

std::string HashParameters(Executor& executor) {
  const CheckpointTensors tensors = CollectTensors(executor);  // in byte order of names
  Sha256 hash;
  const auto add = [&](const PersistentTensor& tensor) {
    tensor.Unpack();
    hash.Add(tensor.data, tensor.type.bytes());
  };
  for (const PersistentTensor& param : tensors.parameters) add(param);
  for (const PersistentTensor& state : tensors.state) {
    if (executor.FindPersistent(state.name)->role != ValueRole::kOptimizer) add(state);
  }
  return hash.Hex();
}

}  // namespace ridge
