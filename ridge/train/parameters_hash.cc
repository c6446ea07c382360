#include "ridge/train/parameters_hash.h"

#include "ridge/core/sha256.h"

namespace ridge {

std::string HashParameters(Executor& executor) {
  const CheckpointTensors tensors = CollectTensors(executor);  // in byte order of names
  Sha256 hash;
  for (const PersistentTensor& param : tensors.parameters) hash.Add(param.data, param.type.bytes());
  for (const PersistentTensor& state : tensors.state) {
    if (executor.FindPersistent(state.name)->role != ValueRole::kOptimizer)
      hash.Add(state.data, state.type.bytes());
  }
  return hash.Hex();
}

}  // namespace ridge
