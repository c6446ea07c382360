#include "ridge/runtime/rehearsal.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "ridge/core/process.h"
#include "ridge/plan/cost/roofline.h"

namespace ridge {
namespace {

constexpr int kWarmUps = 2;  // first touch of the arena, then caches as in a real step
constexpr int kMostRounds = 25;

// Zeros would lie: memory writes zero lines faster than data.  Small positive numbers keep square
// roots and logarithms finite; integers stay zero, which is a valid index or label.
//
// Only what kernels that are timed read: the rest of a large model would take longer to fill than
// the rehearsal may take, and would be resident in a plan that is never run.
class DataFiller {
 public:
  explicit DataFiller(Executor& executor)
      : executor_(executor), filled_(executor.program().persistent.size(), false) {}

  void FillInputs(const StepPlan& step, const PlannedNode& node) {
    for (int input : node.inputs) {
      if (input >= 0 && step.values[static_cast<size_t>(input)].persistent)
        Fill(static_cast<size_t>(step.values[static_cast<size_t>(input)].persistent_index));
    }
  }

 private:
  void Fill(size_t index) {
    if (filled_[index]) return;
    filled_[index] = true;
    const PersistentValue& value = executor_.program().persistent[index];
    std::byte* data = executor_.arena().data() + value.offset_bytes;
    const int64_t count = value.type.elements();
    if (value.type.dtype == DType::kF32) {
      auto* floats = reinterpret_cast<float*>(data);
      for (int64_t i = 0; i < count; ++i) floats[i] = static_cast<float>(Draw());
    } else {
      for (int64_t i = 0; i < count; ++i)
        StoreFromDouble(value.type.dtype, data, i, IsFloat(value.type.dtype) ? Draw() : 0);
    }
  }

  double Draw() {
    state_ = state_ * 1664525 + 1013904223;
    return 0.02 * (state_ >> 8) * 0x1p-24 + 0.001;
  }

  Executor& executor_;
  std::vector<bool> filled_;  // by persistent value
  uint32_t state_ = 12345;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// By the nominal device, not by the profile: one that was measured on a busy machine would say that
// nothing can be afforded.
double ExpectedSeconds(const PlannedNode& node, const DeviceProfile& nominal) {
  const CostClass cost_class = node.def == nullptr ? CostClass::kMove : node.def->cost_class;
  const DType dtype = node.call.outputs.empty() ? DType::kF32 : node.call.outputs[0].dtype;
  return EstimateTime(nominal, cost_class, dtype, node.cost, node.choice).seconds;
}

// Nodes whose turn fits the budget when all of them run `kWarmUps + 3` times: the cheap ones first.
std::vector<bool> Affordable(const StepPlan& step, int threads, double budget_s) {
  const DeviceProfile nominal = NominalProfile(threads);
  std::vector<double> seconds;
  for (const PlannedNode& node : step.nodes) seconds.push_back(ExpectedSeconds(node, nominal));
  std::vector<size_t> order(step.nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });
  std::vector<bool> affordable(step.nodes.size(), false);
  double spent = 0;
  for (size_t n : order) {
    spent += seconds[n] * (kWarmUps + 3);
    if (spent > budget_s) break;
    affordable[n] = true;
  }
  return affordable;
}

class StepRehearsal {
 public:
  StepRehearsal(Executor& executor, int index, double budget_s)
      : executor_(executor),
        index_(index),
        step_(executor.program().steps[static_cast<size_t>(index)]),
        timed_(Affordable(step_, executor.threads(), budget_s)),
        seconds_(step_.nodes.size()),
        deadline_(MonotonicSeconds() + budget_s) {}

  Status Run(DataFiller& filler, std::map<std::string, double>& kernel_s) {
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      if (timed_[n]) filler.FillInputs(step_, step_.nodes[n]);
    }
    for (int round = 0; round < kMostRounds; ++round) {
      if (round >= kWarmUps + 3 && MonotonicSeconds() > deadline_) break;
      RIDGE_RETURN_IF_ERROR(Round(round >= kWarmUps));
    }
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      if (!seconds_[n].empty()) kernel_s[step_.nodes[n].choice.key] = Median(seconds_[n]);
    }
    return Status();
  }

 private:
  Status Round(bool count) {
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      if (!timed_[n]) continue;
      RIDGE_ASSIGN_OR_RETURN(const double s,
                             executor_.TimeNode(index_, static_cast<int>(n), /*slot=*/0));
      if (count) seconds_[n].push_back(s);
    }
    return Status();
  }

  Executor& executor_;
  const int index_;
  const StepPlan& step_;
  const std::vector<bool> timed_;
  std::vector<std::vector<double>> seconds_;
  const double deadline_;
};

}  // namespace

Result<std::map<std::string, double>> Rehearse(Executor& executor, double budget_s) {
  DataFiller filler(executor);
  std::map<std::string, double> kernel_s;
  const auto count = static_cast<double>(executor.program().steps.size());
  for (int i = 0; i < static_cast<int>(executor.program().steps.size()); ++i)
    RIDGE_RETURN_IF_ERROR(StepRehearsal(executor, i, budget_s / count).Run(filler, kernel_s));
  return kernel_s;
}

}  // namespace ridge
