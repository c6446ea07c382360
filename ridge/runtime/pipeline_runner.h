// PipelineRunner: a rank of a pipeline runs its operations.
//
//   runner.RunMicroBatches(hooks)     the schedule: steps of stages, and messages between them
//   runner.RunUpdate(hooks)           numbers that stages share, the update, copies of tied weights
//
// All ranks call the same in the same order.  Messages go from where a step wrote them to where the
// next rank's step reads them, and nothing is allocated.  Not thread-safe.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ridge/pipeline/role.h"
#include "ridge/runtime/executor.h"

namespace ridge {

// Channels of a communicator (dist/communicator.h): below these are a chunk's, two each.
inline constexpr int kShareChannel = 4000, kCopyChannel = 4001, kEvalChannel = 4002,
                     kEvalOutputChannel = 4003, kVariableChannel = 4004;

class PipelineRunner {
 public:
  // The executor's step "eval" runs all stages from now on, and has its outputs at all ranks.
  // REQUIRES: the executor's program is of a pipeline; it has a communicator, and outlives this.
  explicit PipelineRunner(Executor& executor);

  struct Hooks {
    std::function<Status(int step, int slot)> execute;  // a StepPlan
    // Whatever reads a micro batch's inputs into a slot; called once for each, in order.
    std::function<Result<int>(int micro)> take_batch;
    std::function<void(int slot)> release_batch;
  };

  struct Results {  // sums over the micro batches, the same at all ranks
    double loss = 0, correct = 0;
  };
  // Fails with kFailed at all ranks when a loss is not finite: "loss is nan in micro batch 3".
  Result<Results> RunMicroBatches(const Hooks& hooks);
  // Inputs of the update are in slot 0.
  Status RunUpdate(const Hooks& hooks);

  // What this rank sends for its micro batches of an update.
  int64_t message_bytes() const { return message_bytes_; }

 private:
  using Sends = std::vector<std::span<const std::byte>>;
  using Receives = std::vector<std::span<std::byte>>;
  struct Planned {
    Operation operation;
    bool takes_batch = false;
    int step = -1;  // of what computes
    bool has_loss = false, has_correct = false;
    int peer = 0, channel = 0;
    Sends sends;
    Receives receives;
  };
  struct EvalChunk {
    int chunk = 0, step = -1;
    int from = -1, to = -1;  // ranks; -1: none
    Receives receives;
    Sends sends;
  };
  // Of one rank to or from another.
  struct Exchanged {
    int rank = 0;
    Sends sends;
    Receives receives;
  };
  struct Told {  // by each rank
    double loss = 0, correct = 0;
    int64_t bad_micro = -1;
  };

  void PlanOperations();
  Planned PlanOperation(const Operation& operation) const;
  void PlanEvaluation();
  void PlanShares();
  void AddShare(const UpdateMessage& message);
  Exchanged& Between(std::vector<Exchanged>& all, int rank);
  std::span<std::byte> Bytes(const std::string& value) const;
  size_t IndexOf(const std::string& variable) const;

  Status RunOperation(const Planned& planned, const Hooks& hooks, Told& own);
  Status TakeBatch(int micro, const Hooks& hooks);
  Status AddResults(const Planned& planned, Told& own);
  Result<Results> TellResults();
  Status Exchange(const std::vector<Exchanged>& all, int channel);
  Status RunSteps(const std::vector<int>& steps, const Hooks& hooks);
  Status ReadSharedVariables();
  Status SendCopies();
  Status Evaluate(int slot);

  Executor& executor_;
  Communicator& ranks_;
  const PipelineRole& role_;
  int batch_step_ = -1;
  std::vector<int> numbers_steps_, update_steps_;
  std::vector<Planned> operations_;
  std::vector<EvalChunk> eval_chunks_;
  std::vector<Exchanged> shares_, eval_outputs_;
  // Variables that are sent as shares and lie in another layout: row-major copies.
  std::vector<std::pair<size_t, std::vector<std::byte>>> packed_;
  std::vector<Told> told_;  // by rank
  Sends told_sends_;
  Receives told_receives_;
  int64_t message_bytes_ = 0;
};

}  // namespace ridge
