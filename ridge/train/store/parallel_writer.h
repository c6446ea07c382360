// ParallelWriter: the tensor files of a checkpoint, written by several ranks at the same time.
//
// A file is the one that a single rank would write, byte for byte, so every reader reads it at any
// number of ranks.  Each writer has a range of each tensor, syncs and reads back what it wrote.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ridge/core/shared_file.h"
#include "ridge/dist/agreement.h"
#include "ridge/train/store/checkpoint.h"

namespace ridge {

class ParallelWriter {
 public:
  // `writers`: ranks in rising order, equal everywhere.  The communicator outlives this.
  ParallelWriter(Communicator& communicator, std::vector<int> writers)
      : communicator_(communicator), ranks_(&communicator), writers_(std::move(writers)) {}

  // All ranks call it, with equal tensors; the path is rank 0's.  Synced on return.  Fails at all
  // ranks alike, with the failure of the first one; an empty path fails.
  Result<FileDigest> Write(const std::string& path, std::span<const PersistentTensor> tensors);

  // What the ranks call that do not lead, while rank 0 saves a checkpoint.  Fails as Exchange does,
  // not for what could not be written.
  Status Join(const CheckpointTensors& tensors);

  // Why the ranks have lost each other; ok while they have not.
  const Status& lost() const { return lost_; }

 private:
  struct File {
    std::string path;
    std::string head;  // what comes before the tensors' bytes
    int64_t size_bytes = 0;
    std::optional<SharedFile> open;  // at writers
    Status status;                   // the first failure of this rank, or of all
    FileDigest digest;
  };
  // Fail as Exchange does; what else fails is the file's status.
  Status WriteTogether(File& file, std::span<const PersistentTensor> tensors);
  Status Open(File& file);
  Status WriteTensors(File& file, std::span<const PersistentTensor> tensors);
  Status JoinDigests(File& file);
  std::vector<WholeVariables::Range> RangesOf(const PersistentTensor& tensor, size_t turn) const;

  Communicator& communicator_;
  Agreement ranks_;
  const std::vector<int> writers_;
  Status lost_;
};

// The ranks that write checkpoints into `folder`, which is there.  `how` is `--checkpoint-writers`:
// "auto", the first rank of each machine if all of them see the folder, else rank 0; or their
// number, spread over the ranks.  All ranks call it; `communicator` is nullptr for a job of one.
// Fails with kInvalidArgument.
Result<std::vector<int>> ChooseWriters(Communicator* communicator, const std::string& how,
                                       const std::string& folder);

}  // namespace ridge
