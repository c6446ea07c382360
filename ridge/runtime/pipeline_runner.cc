#include "ridge/runtime/pipeline_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ridge/core/process.h"

namespace ridge {
namespace {

constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();
const std::string kLoss = std::string(kResultPrefix) + "loss";
const std::string kCorrect = std::string(kResultPrefix) + "correct";

const char* StepOf(PipelineOp op) {
  if (op == PipelineOp::kForward) return "forward";
  return op == PipelineOp::kBackward ? "backward" : "weights";
}

bool IsForward(PipelineOp op) {
  return op == PipelineOp::kSendForward || op == PipelineOp::kReceiveForward;
}

// Adds the seconds of its life to what the executor spends in collectives.
class CommunicationScope {
 public:
  explicit CommunicationScope(Executor& executor)
      : executor_(executor), begin_s_(MonotonicSeconds()) {}
  ~CommunicationScope() { executor_.AddCollectiveSeconds(MonotonicSeconds() - begin_s_); }
  CommunicationScope(const CommunicationScope&) = delete;
  CommunicationScope& operator=(const CommunicationScope&) = delete;

 private:
  Executor& executor_;
  const double begin_s_;
};

}  // namespace

PipelineRunner::PipelineRunner(Executor& executor)
    : executor_(executor),
      ranks_(*executor.communicator()),
      role_(*executor.program().pipeline),
      batch_step_(executor.StepIndex("batch")),
      told_(static_cast<size_t>(ranks_.size())),
      told_sends_(told_.size()),
      told_receives_(told_.size()) {
  for (int c = role_.device; c < role_.schedule.chunks; c += role_.schedule.devices) {
    numbers_steps_.push_back(executor.StepIndex(ChunkStep("numbers", c)));
    update_steps_.push_back(executor.StepIndex(ChunkStep("update", c)));
  }
  PlanOperations();
  PlanShares();
  PlanEvaluation();
  const int eval = executor.StepIndex("eval");
  if (eval >= 0) executor.RunInstead(eval, [this](int slot) { return Evaluate(slot); });
  for (size_t r = 0; r < told_.size(); ++r) {
    told_sends_[r] = std::as_bytes(std::span(&told_[static_cast<size_t>(role_.device)], 1));
    told_receives_[r] = std::as_writable_bytes(std::span(&told_[r], 1));
  }
}

// ---- what is where

std::span<std::byte> PipelineRunner::Bytes(const std::string& value) const {
  return executor_.MicroBatchBytes(value, /*micro=*/0);
}

size_t PipelineRunner::IndexOf(const std::string& variable) const {
  const std::vector<PersistentValue>& values = executor_.program().persistent;
  const auto found = std::find_if(values.begin(), values.end(), [&](const PersistentValue& value) {
    return value.name == variable;
  });
  RIDGE_CHECK(found != values.end(), "no variable '" + variable + "'");
  return static_cast<size_t>(found - values.begin());
}

void PipelineRunner::PlanOperations() {
  int next_micro = 0;
  for (const Operation& operation : role_.schedule.ops[static_cast<size_t>(role_.device)]) {
    Planned planned = PlanOperation(operation);
    planned.takes_batch = operation.op == PipelineOp::kForward && operation.micro == next_micro;
    if (planned.takes_batch) ++next_micro;
    for (std::span<const std::byte> part : planned.sends) message_bytes_ += std::ssize(part);
    operations_.push_back(std::move(planned));
  }
  RIDGE_CHECK(message_bytes_ == role_.message_bytes(role_.device),
              "messages are those of the plan");
}

PipelineRunner::Planned PipelineRunner::PlanOperation(const Operation& o) const {
  Planned planned;
  planned.operation = o;
  if (o.is_compute()) {
    planned.step = executor_.StepIndex(ChunkStep(StepOf(o.op), o.chunk));
    planned.has_loss = planned.step >= 0 && executor_.HasOutput(planned.step, kLoss);
    planned.has_correct = planned.step >= 0 && executor_.HasOutput(planned.step, kCorrect);
    return planned;
  }
  const int peer = PeerChunk(o), sender = o.is_send() ? o.chunk : peer;
  const PipelineRole::Chunk& from = role_.chunks[static_cast<size_t>(sender)];
  planned.peer = role_.schedule.DeviceOf(peer);
  planned.channel = 2 * (sender / role_.schedule.devices) + (IsForward(o.op) ? 0 : 1);
  for (const std::string& name : IsForward(o.op) ? from.sends_forward : from.sends_backward) {
    const auto bytes = executor_.MicroBatchBytes(ChunkState(o.chunk, name), o.micro);
    if (o.is_send()) {
      planned.sends.push_back(bytes);
    } else {
      planned.receives.push_back(bytes);
    }
  }
  return planned;
}

PipelineRunner::Exchanged& PipelineRunner::Between(std::vector<Exchanged>& all, int rank) {
  for (Exchanged& exchanged : all)
    if (exchanged.rank == rank) return exchanged;
  all.push_back({rank, {}, {}});
  return all.back();
}

void PipelineRunner::PlanShares() {
  // First, since spans are into them.
  for (const UpdateMessage& message : role_.shares) {
    const bool state = message.value == message.becomes;
    if (state || message.from != role_.device) continue;
    const size_t index = IndexOf(message.value);
    const PersistentValue& value = executor_.program().persistent[index];
    if (value.layout != kRowMajor)
      packed_.emplace_back(index, std::vector<std::byte>(static_cast<size_t>(value.type.bytes())));
  }
  for (const UpdateMessage& message : role_.shares) AddShare(message);
}

void PipelineRunner::AddShare(const UpdateMessage& message) {
  for (const int to : message.to) {
    if (to == role_.device)
      Between(shares_, message.from).receives.push_back(Bytes(message.becomes));
    if (message.from != role_.device) continue;
    std::span<const std::byte> bytes = Bytes(message.value);
    for (const auto& [index, packed] : packed_)
      if (executor_.program().persistent[index].name == message.value) bytes = packed;
    Between(shares_, to).sends.push_back(bytes);
  }
}

void PipelineRunner::PlanEvaluation() {
  if (executor_.StepIndex("eval") < 0) return;
  const PipelineSchedule& schedule = role_.schedule;
  for (int c = role_.device; c < schedule.chunks; c += schedule.devices) {
    EvalChunk chunk;
    chunk.chunk = c;
    chunk.step = executor_.StepIndex(ChunkStep("eval", c));
    if (c > 0) {
      chunk.from = schedule.DeviceOf(c - 1);
      for (const std::string& name : role_.chunks[static_cast<size_t>(c) - 1].sends_eval)
        chunk.receives.push_back(Bytes(EvalState(c, name)));
    }
    if (c + 1 < schedule.chunks) {
      chunk.to = schedule.DeviceOf(c + 1);
      for (const std::string& name : role_.chunks[static_cast<size_t>(c)].sends_eval)
        chunk.sends.push_back(Bytes(EvalState(c, name)));
    }
    eval_chunks_.push_back(std::move(chunk));
  }
  for (const PipelineRole::EvalOutput& output : role_.eval_outputs) {
    const std::span<std::byte> bytes = Bytes(EvalOutputState(output.name));
    if (output.device != role_.device)
      Between(eval_outputs_, output.device).receives.push_back(bytes);
    for (int r = 0; r < ranks_.size(); ++r) {
      if (output.device == role_.device && r != role_.device)
        Between(eval_outputs_, r).sends.push_back(bytes);
    }
  }
}

// ---- micro batches

Result<PipelineRunner::Results> PipelineRunner::RunMicroBatches(const Hooks& hooks) {
  Told& own = told_[static_cast<size_t>(role_.device)];
  own = {};
  for (const Planned& planned : operations_)
    RIDGE_RETURN_IF_ERROR(RunOperation(planned, hooks, own));
  const CommunicationScope communicates(executor_);
  RIDGE_RETURN_IF_ERROR(ranks_.FinishSends());
  return TellResults();
}

Status PipelineRunner::RunOperation(const Planned& planned, const Hooks& hooks, Told& own) {
  const Operation& o = planned.operation;
  if (o.is_compute()) {
    if (planned.takes_batch) RIDGE_RETURN_IF_ERROR(TakeBatch(o.micro, hooks));
    if (planned.step < 0) return Status();
    executor_.SetMicroBatch(o.micro);
    RIDGE_RETURN_IF_ERROR(hooks.execute(planned.step, /*slot=*/0));
    return AddResults(planned, own);
  }
  const CommunicationScope communicates(executor_);
  return o.is_send() ? ranks_.Send(planned.peer, planned.channel, planned.sends, role_.capacity)
                     : ranks_.Receive(planned.peer, planned.channel, planned.receives);
}

Status PipelineRunner::TakeBatch(int micro, const Hooks& hooks) {
  RIDGE_ASSIGN_OR_RETURN(const int slot, hooks.take_batch(micro));
  executor_.SetMicroBatch(micro);
  RIDGE_RETURN_IF_ERROR(hooks.execute(batch_step_, slot));
  hooks.release_batch(slot);
  return Status();
}

Status PipelineRunner::AddResults(const Planned& planned, Told& own) {
  Transfers& transfers = executor_.transfers();
  if (planned.has_loss) {
    RIDGE_ASSIGN_OR_RETURN(const double loss, transfers.Scalar(planned.step, kLoss));
    if (!std::isfinite(loss) && own.bad_micro < 0) own.bad_micro = planned.operation.micro;
    own.loss += loss;
  }
  if (planned.has_correct) {
    RIDGE_ASSIGN_OR_RETURN(const double correct, transfers.Scalar(planned.step, kCorrect));
    own.correct += correct;
  }
  return Status();
}

// One rank has the loss; to add zeros changes no bit.
Result<PipelineRunner::Results> PipelineRunner::TellResults() {
  RIDGE_RETURN_IF_ERROR(ranks_.Exchange(told_sends_, told_receives_));
  Results results;
  int64_t bad_micro = -1;
  for (const Told& told : told_) {
    results.loss += told.loss;
    results.correct += told.correct;
    bad_micro = std::max(bad_micro, told.bad_micro);
  }
  if (bad_micro < 0) return results;
  return Status(ErrorCode::kFailed,
                fmt::format("loss is {} in micro batch {}",
                            std::isnan(results.loss) ? "nan" : "infinite", bad_micro));
}

// ---- update

Status PipelineRunner::Exchange(const std::vector<Exchanged>& all, int channel) {
  const CommunicationScope communicates(executor_);
  for (const Exchanged& with : all)
    if (!with.sends.empty())
      RIDGE_RETURN_IF_ERROR(ranks_.Send(with.rank, channel, with.sends, kAnyNumber));
  for (const Exchanged& with : all)
    if (!with.receives.empty())
      RIDGE_RETURN_IF_ERROR(ranks_.Receive(with.rank, channel, with.receives));
  return ranks_.FinishSends();
}

Status PipelineRunner::RunSteps(const std::vector<int>& steps, const Hooks& hooks) {
  for (const int step : steps)
    if (step >= 0) RIDGE_RETURN_IF_ERROR(hooks.execute(step, /*slot=*/0));
  return Status();
}

Status PipelineRunner::ReadSharedVariables() {
  for (auto& [index, bytes] : packed_) {
    RIDGE_ASSIGN_OR_RETURN(const void* data, executor_.transfers().Read(index));
    std::memcpy(bytes.data(), data, bytes.size());
  }
  return Status();
}

Status PipelineRunner::RunUpdate(const Hooks& hooks) {
  executor_.SetMicroBatch(0);
  RIDGE_RETURN_IF_ERROR(RunSteps(numbers_steps_, hooks));
  RIDGE_RETURN_IF_ERROR(ReadSharedVariables());
  RIDGE_RETURN_IF_ERROR(Exchange(shares_, kShareChannel));
  RIDGE_RETURN_IF_ERROR(RunSteps(update_steps_, hooks));
  return SendCopies();
}

// One after the other, in the same order at all ranks.
Status PipelineRunner::SendCopies() {
  Transfers& transfers = executor_.transfers();
  const CommunicationScope communicates(executor_);
  for (const UpdateMessage& copy : role_.copies) {
    const int to = copy.to.front();
    if (copy.from == role_.device) {
      RIDGE_ASSIGN_OR_RETURN(const void* data, transfers.Read(IndexOf(copy.value)));
      const std::span<const std::byte> part(static_cast<const std::byte*>(data),
                                            static_cast<size_t>(copy.bytes));
      RIDGE_RETURN_IF_ERROR(to == role_.device
                                ? transfers.Write(IndexOf(copy.becomes), data)
                                : ranks_.Send(to, kCopyChannel, {&part, 1}, /*most_waiting=*/0));
    } else if (to == role_.device) {
      const size_t index = IndexOf(copy.becomes);
      const std::span<std::byte> part(static_cast<std::byte*>(transfers.Edit(index)),
                                      static_cast<size_t>(copy.bytes));
      RIDGE_RETURN_IF_ERROR(ranks_.Receive(copy.from, kCopyChannel, {&part, 1}));
      RIDGE_RETURN_IF_ERROR(transfers.Commit(index));
    }
  }
  return Status();
}

// ---- evaluation

Status PipelineRunner::Evaluate(int slot) {
  for (const EvalChunk& chunk : eval_chunks_) {
    if (chunk.from >= 0)
      RIDGE_RETURN_IF_ERROR(ranks_.Receive(chunk.from, kEvalChannel, chunk.receives));
    if (chunk.step >= 0) RIDGE_RETURN_IF_ERROR(executor_.Run(chunk.step, slot));
    if (chunk.to >= 0)
      RIDGE_RETURN_IF_ERROR(ranks_.Send(chunk.to, kEvalChannel, chunk.sends, /*most_waiting=*/0));
  }
  return Exchange(eval_outputs_, kEvalOutputChannel);
}

}  // namespace ridge
