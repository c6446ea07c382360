// The three files of one checkpoint.
#pragma once
#include <span>
#include <string>

#include "ridge/train/store/checkpoint.h"

namespace ridge {

inline constexpr char kCheckpointStateFile[] = "state.json";

// What comes before the tensors' bytes in their file.
Result<std::string> HeadOf(std::span<const PersistentTensor> tensors);

// Creates `folder` and writes all three; fills in the digests of `state`.  Synced on return; what
// `parallel` wrote is verified.  Fails with kUnavailable.
Status WriteCheckpointFiles(const std::string& folder, const CheckpointTensors& tensors,
                            CheckpointState& state, ParallelWriter* parallel);

// Replaces state.json only.
Status WriteCheckpointState(const std::string& folder, const CheckpointState& state);

Result<CheckpointState> ReadCheckpointState(const std::string& folder);

// Reads both tensor files and state.json and compares checksums.  Fails with kInvalidData.
Status VerifyCheckpointFiles(const std::string& folder, const CheckpointState& state);

// Copies into the tensors.  Fails with kInvalidData when names or types differ; some tensors may
// then be overwritten.
Status ReadCheckpointFiles(const std::string& folder, const CheckpointTensors& tensors,
                           LoadMode mode);

}  // namespace ridge
