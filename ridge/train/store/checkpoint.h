// Checkpoints: the run's parameters and state on disk, complete or not there at all.
//
//   FOLDER/step-<n>/parameters.safetensors  state.safetensors  state.json
//   FOLDER/best -> step-<n>
//
// Save() writes into step-<n>.tmp-<pid>, syncs, reads everything back and compares checksums, then
// renames.  Only after that older ones go.  A failed save leaves what was there before and no
// rest.  Memory: none beyond a file header; tensors are written from where they lie.
// Gradient accumulators are not saved: checkpoints are taken where they are zero.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/runtime/executor.h"
#include "ridge/train/store/checkpoint_state.h"

namespace ridge {

struct PersistentTensor {
  std::string name;
  TensorType type;
  void* data = nullptr;        // row-major, in the arena; of all packed tensors the same place
  Executor* packed = nullptr;  // the executor that has it in another layout; nullptr: none
  size_t index = 0;            // there, in program().persistent

  // Before data is read, and after it has been written.
  void Unpack() const {
    if (packed != nullptr) packed->Unpack(index);
  }
  void Pack() const {
    if (packed != nullptr) packed->Pack(index);
  }
};

// What a checkpoint holds, in order of names.
struct CheckpointTensors {
  std::vector<PersistentTensor> parameters;
  std::vector<PersistentTensor> state;  // statistics and optimizer
};
CheckpointTensors CollectTensors(Executor& executor);

struct LoadedCheckpoint {
  CheckpointState state;
  std::string path;
  std::vector<std::string> warnings;  // newer ones that could not be used, and why
};

enum class LoadMode {
  kResume,   // the file holds exactly the executor's tensors
  kWeights,  // the file holds at least the executor's tensors
};

// Which checkpoint: "newest", "best", or the number of a step.  Fails with kInvalidArgument.
inline constexpr char kNewestCheckpoint[] = "newest";
Status CheckCheckpointName(const std::string& which);

// That checkpoint of a run (of the newest, one whose files are whole), copied into what the
// executor has of its parameters and state.  Fails with kInvalidData when the run has none such.
Result<LoadedCheckpoint> LoadWeights(const std::string& run, const std::string& which,
                                     Executor& executor);

// Its folder.  `warnings`: newer ones that could not be used, and why.  Fails as LoadWeights does.
Result<std::string> FindCheckpoint(const std::string& run, const std::string& which,
                                   std::vector<std::string>* warnings = nullptr);

// The parameters and statistics of a checkpoint's folder, for a new training: what belongs to the
// optimizer stays as it is.  Fails with kInvalidData.
Status LoadStartValues(const std::string& folder, Executor& executor);

class CheckpointFolder {
 public:
  CheckpointFolder(std::string folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {}

  // Writes step-<state.step>; fills the digests in.  `best`: afterwards FOLDER/best points here.
  // Fails with kUnavailable (disk full, no access), or kInvalidData when it can't be read back.
  Status Save(const CheckpointTensors& tensors, CheckpointState state, bool best) const;

  // Puts `state` in the place of what the checkpoint of its step says of itself (an evaluation came
  // after it); the digests stay.  `best` as in Save().  Fails with kUnavailable, kInvalidData.
  Status Amend(CheckpointState state, bool best) const;

  // The newest good one is copied into the tensors.  nullopt when there is none at all.
  // Fails with kInvalidData when there are some and all are damaged; the message has the reasons.
  Result<std::optional<LoadedCheckpoint>> LoadNewest(const CheckpointTensors& tensors,
                                                     LoadMode mode) const;

  // The newest that is good; the one that is best, or of a step.  Fails with kInvalidData when
  // there is none such.
  Result<LoadedCheckpoint> Load(const std::string& which, const CheckpointTensors& tensors,
                                LoadMode mode) const;

  // The same without its tensors.
  Result<LoadedCheckpoint> Find(const std::string& which) const;

  std::vector<int64_t> Steps() const;  // newest first
  std::string PathOf(int64_t step) const;

  // Removes what a killed process left half written.
  void RemoveRests() const;

 private:
  Result<CheckpointState> LoadStep(int64_t step, const CheckpointTensors* tensors,
                                   LoadMode mode) const;
  Result<LoadedCheckpoint> LoadFirst(const std::vector<int64_t>& steps,
                                     const CheckpointTensors* tensors, LoadMode mode) const;
  Result<std::vector<int64_t>> StepsOf(const std::string& which) const;
  void RemoveOld() const;
  Status PointBest(int64_t step) const;
  std::string BestTarget() const;

  std::string folder_;
  int64_t keep_;
};

}  // namespace ridge
