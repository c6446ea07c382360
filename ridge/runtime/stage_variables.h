// StageVariables: the variables of a job whose ranks have the stages of a pipeline.
#pragma once
#include <memory>
#include <vector>

#include "ridge/pipeline/role.h"
#include "ridge/runtime/whole_variables.h"

namespace ridge {

// By index into PipelineRole::variables.  A rank has whole variables, and rank 0 asks their rank
// for them, 1 MiB at a time.
class StageVariables final : public WholeVariables {
 public:
  // `communicator`: null for rank 0 alone, which then reads its own.  Both outlive this.
  // REQUIRES: the executor's program is of a pipeline.
  StageVariables(Executor& executor, Communicator* communicator);

  bool leads() const override;
  Status Initialize(uint64_t seed) override;
  Status Read(size_t index, const Take& take) override;
  // Every rank that has the variable, or a copy of a tied weight, takes it.
  Status Write(size_t index, const Fill& fill) override;
  Status ReadRanges(size_t index, const std::vector<Range>& ranges, const Take& take) override;
  Status Serve() override;
  Status Release() override;

 private:
  Status SendPieces(size_t index);
  Status TellRank(int rank, int64_t index);

  Executor& executor_;
  Communicator* const communicator_;
  const PipelineRole& role_;
  // By variable: those of the program's persistent values that hold it, its own first.
  std::vector<std::vector<size_t>> here_;
  std::vector<std::byte> piece_;
};

// MeshVariables or StageVariables.  REQUIRES: the executor's program has a place.
std::unique_ptr<WholeVariables> MakeWholeVariables(Executor& executor, Communicator* communicator);

}  // namespace ridge
