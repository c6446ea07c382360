#include "ridge/train/store/parameters_hash.h"

#include "ridge/core/sha256.h"
#include "ridge/dist/gather.h"

namespace ridge {

namespace {

Result<std::string> HashHere(Executor& executor, WholeVariables* wholes) {
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
    if (state.role != ValueRole::kOptimizer) RIDGE_RETURN_IF_ERROR(add(state));
  }
  return hash.Hex();
}

}  // namespace

Result<std::string> HashParameters(Executor& executor, WholeVariables* wholes,
                                   Communicator* communicator) {
  if (wholes == nullptr || communicator == nullptr) return HashHere(executor, wholes);
  if (!wholes->leads()) {
    RIDGE_RETURN_IF_ERROR(wholes->Serve());
    return TextOfFirst(*communicator, "");
  }
  const Result<std::string> hash = HashHere(executor, wholes);
  RIDGE_RETURN_IF_ERROR(wholes->Release());
  RIDGE_RETURN_IF_ERROR(hash.status());
  return TextOfFirst(*communicator, *hash);
}

}  // namespace ridge
