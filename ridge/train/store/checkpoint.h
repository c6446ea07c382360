// Checkpoints: the run's parameters and state on disk, complete or absent.
//
//   FOLDER/step-<n>/parameters.safetensors  state.safetensors  state.json
//   FOLDER/best -> step-<n>
//
// Save() writes into step-<n>.tmp-<pid>, syncs, reads everything back and compares checksums, then
// renames.  Only then it removes older ones.  A failed save leaves the existing checkpoints and no
// partial one.  Memory: none beyond a file header; tensors are written directly from the arena,
// where the host reaches it. Gradient accumulators are not saved: they are zero whenever a
// checkpoint is written.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/runtime/executor.h"
#include "ridge/runtime/whole_variables.h"
#include "ridge/train/store/checkpoint_state.h"

namespace ridge {

class ParallelWriter;

struct PersistentTensor {
  std::string name;
  TensorType type;
  Transfers* transfers = nullptr;
  size_t index = 0;      // in the program's persistent values, or in its stages' variables
  void* data = nullptr;  // without transfers: its bytes in host memory
  WholeVariables* wholes = nullptr;  // where ranks have parts of it
  ValueRole role = ValueRole::kNone;

  // Calls take() with its row-major bytes, in order, in one piece or several.  Of one of which
  // ranks have parts: at rank 0, while the others serve.
  Status Read(const WholeVariables::Take& take) const;
  // Calls take() with the bytes of this rank's range of elements, where all ranks call this with
  // equal ranges by rank.
  Status ReadRanges(const std::vector<WholeVariables::Range>& ranges, int rank,
                    const WholeVariables::Take& take) const;
  // Calls fill() for ranges of its bytes, each once, and stores what that writes.
  Status Write(const WholeVariables::Fill& fill) const;
};

// What a checkpoint holds, in order of names.
struct CheckpointTensors {
  std::vector<PersistentTensor> parameters;
  std::vector<PersistentTensor> state;  // statistics and optimizer
};
// `wholes`: null for a program whose variables are whole; else it outlives them.
CheckpointTensors CollectTensors(Executor& executor, WholeVariables* wholes = nullptr);

struct LoadedCheckpoint {
  CheckpointState state;
  std::string path;
  std::vector<std::string> warnings;  // newer checkpoints that are unusable, and why
};

enum class LoadMode {
  kResume,   // the file holds exactly the executor's tensors
  kWeights,  // the file holds at least the executor's tensors
};

// Which checkpoint: "newest" or "last", "best", a step ("120", "step-120"), or the folder of one,
// of any run.  Fails with kInvalidArgument.
inline constexpr char kNewestCheckpoint[] = "newest";
Status CheckCheckpointName(const std::string& which);

// Loads parameters and statistics from a checkpoint's folder for a new training; optimizer state is
// not changed.  Fails with kInvalidData.
Status LoadStartValues(const std::string& folder, Executor& executor,
                       WholeVariables* wholes = nullptr);

// The checkpoints of a run, for reading.
class Checkpoints {
 public:
  explicit Checkpoints(std::string folder) : folder_(std::move(folder)) {}

  std::vector<int64_t> Steps() const;  // newest first
  std::string List() const;            // "3, 6 (best), 9", for messages
  std::string PathOf(int64_t step) const;

  // The newest undamaged checkpoint, or the one that is named.  Fails with kInvalidArgument
  // (CheckCheckpointName), and with kInvalidData when there is none; the message has the reasons.
  Result<LoadedCheckpoint> Find(const std::string& which) const;

  // The same, copied into the tensors.
  Result<LoadedCheckpoint> Load(const std::string& which, const CheckpointTensors& tensors,
                                LoadMode mode) const;

 protected:
  const std::string& folder() const { return folder_; }
  std::string BestTarget() const;

 private:
  Result<CheckpointState> LoadFolder(const std::string& path, const CheckpointTensors* tensors,
                                     LoadMode mode) const;
  Result<LoadedCheckpoint> LoadFirst(const std::vector<std::string>& paths,
                                     const CheckpointTensors* tensors, LoadMode mode) const;
  Result<std::vector<std::string>> PathsOf(const std::string& which) const;

  std::string folder_;
};

// The checkpoints of a training that goes on; `keep` of them stay, and the best one.
class CheckpointWriter : public Checkpoints {
 public:
  CheckpointWriter(std::string folder, int64_t keep)
      : Checkpoints(std::move(folder)), keep_(keep) {}

  // Writes step-<state.step> and fills in its digests.  `best`: then points FOLDER/best to it.
  // `parallel`: the ranks that write, nullptr for this one alone; the others call its Join().
  // Fails with kUnavailable (disk full, no access), or kInvalidData when it can't be read back.
  Status Save(const CheckpointTensors& tensors, CheckpointState state, bool best,
              ParallelWriter* parallel = nullptr) const;

  // Replaces the state of the checkpoint of its step, after an evaluation; keeps the digests.
  // `best` as in Save().  Fails with kUnavailable, kInvalidData.
  Status Amend(CheckpointState state, bool best) const;

  // Removes temporary folders and links that a killed process left.
  void RemoveTemporaries() const;

 private:
  void RemoveOld() const;
  Status PointBest(int64_t step) const;

  int64_t keep_;
};

}  // namespace ridge
