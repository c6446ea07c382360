#include "ridge/backend/cpu/timed_call.h"

#include <algorithm>
#include <cmath>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/core/process.h"

namespace ridge::cpu {

// A linear congruence is random enough to keep the hardware from recognizing zeros.
Tensor RandomBytes(int64_t bytes) {
  Tensor tensor({DType::kF32, {std::max<int64_t>(1, (bytes + 3) / 4)}});
  auto* data = tensor.as_mutable<float>();
  uint32_t state = 12345;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    state = state * 1664525 + 1013904223;
    data[i] = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
  }
  return tensor;
}

Result<TimedCall> TimedCall::Make(Backend& backend, const char* op_name,
                                  std::vector<TensorType> inputs, AttrMap attrs,
                                  std::vector<LayoutId> available, bool alone) {
  const OpDef* op = FindOp(op_name);
  RIDGE_CHECK(op != nullptr, op_name);
  OpCall call{std::string("timing of ") + op_name, std::move(inputs), {}, std::move(attrs)};
  RIDGE_ASSIGN_OR_RETURN(call.outputs, InferCall(*op, call));
  available.resize(call.inputs.size(), kRowMajor);
  TimedCall timed;
  timed.cost_ = CallCost(*op, call);
  const KernelCandidates candidates = alone ? backend.SerialCandidates(*op, call, available)
                                            : backend.Candidates(*op, call, available);
  timed.choice_ = candidates.choices.at(0);
  RIDGE_ASSIGN_OR_RETURN(timed.kernel_, backend.Create(*op, call, timed.choice_));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorType& type = call.inputs[i];
    const bool number = IsFloat(type.dtype);  // indices and labels stay 0
    const int64_t bytes = backend.LayoutBytes(timed.choice_.input_layouts[i], type);
    timed.storage_.push_back(number ? RandomBytes(bytes) : Tensor({DType::kU8, {bytes}}));
    timed.inputs_.push_back(timed.storage_.back().data());
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    timed.storage_.push_back(
        RandomBytes(backend.LayoutBytes(timed.choice_.output_layouts[i], call.outputs[i])));
    timed.outputs_.push_back(timed.storage_.back().mutable_data());
  }
  timed.storage_.push_back(RandomBytes(timed.choice_.workspace_bytes));
  timed.workspace_ = timed.storage_.back().mutable_data();
  return timed;
}

double ShortestTime(Watch& watch, double budget_s, int least_rounds,
                    const std::function<void()>& run) {
  double best = INFINITY, second = INFINITY;
  const double begin = watch.now();
  for (int round = 1;; ++round) {
    const double start = watch.now();
    run();
    const double end = watch.now(), seconds = end - start;
    second = std::min(second, std::max(best, seconds));
    best = std::min(best, seconds);
    const double spent = end - begin;
    if (round < least_rounds || spent < budget_s) continue;
    if (second > 1.1 * best && spent < 10 * budget_s) continue;
    if (round > 1) watch.spreads.push_back(second / best - 1);
    return best;
  }
}

void TimedCall::RunOnce() {
  const Status status = RunOnHost(*kernel_, {inputs_, outputs_, workspace_});
  RIDGE_CHECK(status.ok(), status.message());
}

double TimedCall::Best(Watch& watch, double budget_s) {
  return ShortestTime(watch, budget_s, /*least_rounds=*/3, [this] { RunOnce(); });
}

}  // namespace ridge::cpu
