#include "ridge/runtime/kernel_timer.h"

#include <algorithm>
#include <limits>

#include "ridge/core/rounding.h"
#include "ridge/plan/program.h"
#include "ridge/runtime/timing_data.h"

namespace ridge {
namespace {

constexpr int kFewestRounds = 4;  // the first warms up
constexpr int kMostRounds = 40;
constexpr double kEnough_s = 0.02;    // of one kernel
constexpr int kMostRunsOfAPlay = 16;  // which together last kEnough_s at most

// Offsets of the operands: one span for each, as large as the largest layout of the choices.
class Operands {
 public:
  Operands(Backend& backend, const OpCall& call, const std::vector<KernelChoice>& choices)
      : alignment_(backend.memory().alignment_bytes) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      int64_t bytes = 0;
      for (const KernelChoice& choice : choices) {
        if (call.has_input(i))
          bytes = std::max(bytes, backend.LayoutBytes(choice.input_layouts[i], call.inputs[i]));
      }
      inputs_.push_back(Reserve(bytes));
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      int64_t bytes = 0;
      for (const KernelChoice& choice : choices)
        bytes = std::max(bytes, backend.LayoutBytes(choice.output_layouts[k], call.outputs[k]));
      outputs_.push_back(Reserve(bytes));
    }
    int64_t workspace = 0;
    for (const KernelChoice& choice : choices)
      workspace = std::max(workspace, choice.workspace_bytes);
    workspace_ = Reserve(workspace);
  }

  int64_t bytes() const { return bytes_; }

  Status Fill(const OpCall& call, Backend& backend, const Memory& memory) const {
    TimingData data;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].bytes > 0)
        RIDGE_RETURN_IF_ERROR(
            data.Fill(call.inputs[i].dtype, backend, memory, inputs_[i].offset, inputs_[i].bytes));
    }
    return Status();
  }

  Status Enqueue(Kernel& kernel, const OpCall& call, Stream& stream, std::byte* base) const {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(call.has_input(i) ? base + inputs_[i].offset : nullptr);
    for (const Span& output : outputs_) outputs.push_back(base + output.offset);
    return kernel.Enqueue(stream, {inputs, outputs, base + workspace_.offset});
  }

 private:
  struct Span {
    int64_t offset = 0, bytes = 0;
  };

  Span Reserve(int64_t bytes) {
    const Span span{bytes_, RoundUp(bytes, alignment_)};
    bytes_ += span.bytes;
    return span;
  }

  const int64_t alignment_;
  std::vector<Span> inputs_, outputs_;
  Span workspace_;
  int64_t bytes_ = 0;
};

// Runs of a kernel by the device's clock.  Where the stream records, a round is one play of several
// runs: else a short kernel would be timed with the host's work for its launch.
class Stopwatch {
 public:
  // All outlive this.
  Stopwatch(Device& device, Kernel& kernel, const OpCall& call, const Operands& operands,
            std::byte* base)
      : stream_(device.stream(0)),
        kernel_(kernel),
        call_(call),
        operands_(operands),
        base_(base),
        begins_(device.MakeEvent()),
        ends_(device.MakeEvent()) {}

  // Seconds of a round, which has runs() runs.  The first is a plain one, in which libraries load
  // what they need.
  Result<double> Round() {
    stream_.Record(*begins_);
    if (recording_ != nullptr) {
      stream_.Play(*recording_);
    } else {
      RIDGE_RETURN_IF_ERROR(Enqueue());
    }
    stream_.Record(*ends_);
    RIDGE_RETURN_IF_ERROR(stream_.Synchronize());
    const double seconds = SecondsBetween(*begins_, *ends_);
    if (recording_ == nullptr && stream_.records()) RIDGE_RETURN_IF_ERROR(Keep(seconds));
    return seconds;
  }
  int runs() const { return runs_; }

 private:
  Status Enqueue() { return operands_.Enqueue(kernel_, call_, stream_, base_); }
  Status Keep(double run_s) {
    const double most = run_s > 0 ? kEnough_s / run_s : kMostRunsOfAPlay;
    runs_ = static_cast<int>(std::clamp<double>(most, 1, kMostRunsOfAPlay));
    stream_.BeginRecording();
    Status status;
    for (int run = 0; status.ok() && run < runs_; ++run) status = Enqueue();
    Result<std::unique_ptr<Recording>> recording = stream_.EndRecording();
    RIDGE_RETURN_IF_ERROR(status);
    RIDGE_ASSIGN_OR_RETURN(recording_, std::move(recording));
    return Status();
  }

  Stream& stream_;
  Kernel& kernel_;
  const OpCall& call_;
  const Operands& operands_;
  std::byte* const base_;
  const std::unique_ptr<Event> begins_, ends_;
  std::unique_ptr<Recording> recording_;
  int runs_ = 1;  // of the next round
};

Status Named(const KernelChoice& choice, const Status& status) {
  return Status(status.code(), choice.kernel + ": " + status.message());
}

Result<std::vector<std::unique_ptr<Kernel>>> MakeKernels(Backend& backend, const OpDef* op,
                                                         const OpCall& call,
                                                         const std::vector<KernelChoice>& choices) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const KernelChoice& choice : choices) {
    RIDGE_ASSIGN_OR_RETURN(auto kernel, op == nullptr
                                            ? backend.CreateReorder(call.inputs[0], choice)
                                            : backend.Create(*op, call, choice));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

Result<std::vector<double>> TimeKernels(Backend& backend, const OpDef* op, const OpCall& call,
                                        const std::vector<KernelChoice>& choices) {
  RIDGE_ASSIGN_OR_RETURN(const auto kernels, MakeKernels(backend, op, call, choices));
  const Operands operands(backend, call, choices);
  Device& device = backend.device();
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> arena, device.Allocate(operands.bytes()));
  RIDGE_RETURN_IF_ERROR(operands.Fill(call, backend, *arena));
  std::vector<std::unique_ptr<Stopwatch>> watches;
  for (const std::unique_ptr<Kernel>& kernel : kernels)
    watches.push_back(std::make_unique<Stopwatch>(device, *kernel, call, operands, arena->data()));
  std::vector<double> least(choices.size(), std::numeric_limits<double>::infinity());
  std::vector<double> spent(choices.size(), 0);
  for (int round = 0; round < kMostRounds; ++round) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (round >= kFewestRounds && spent[k] > kEnough_s) continue;
      const int runs = watches[k]->runs();
      const Result<double> seconds = watches[k]->Round();
      if (!seconds.ok()) return Named(choices[k], seconds.status());
      spent[k] += *seconds;
      if (round > 0) least[k] = std::min(least[k], *seconds / runs);
    }
  }
  return least;
}

}  // namespace ridge
