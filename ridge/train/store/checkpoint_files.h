// The three files of one checkpoint.
#pragma once
#include <string>

#include "ridge/train/store/checkpoint.h"

namespace ridge {

// Makes `folder` and writes all three; fills the digests of `state` in.  Synced when it returns.
// Fails with kUnavailable.
Status WriteCheckpointFiles(const std::string& folder, const CheckpointTensors& tensors,
                            CheckpointState& state);

// state.json alone, in the place of the one that is there.
Status WriteCheckpointState(const std::string& folder, const CheckpointState& state);

Result<CheckpointState> ReadCheckpointState(const std::string& folder);

// Reads both tensor files and state.json and compares checksums.  Fails with kInvalidData.
Status VerifyCheckpointFiles(const std::string& folder, const CheckpointState& state);

// Copies into the tensors.  Fails with kInvalidData when names or types don't fit; then tensors may
// have been overwritten.
Status ReadCheckpointFiles(const std::string& folder, const CheckpointTensors& tensors,
                           LoadMode mode);

}  // namespace ridge
