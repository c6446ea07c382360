// Kernels of equal key are timed once, on one of their nodes.  The first round goes from the cheap
// to the dear until the budget is spoken for, by the clock and not by the roofline: that was wrong
// by factors where a kernel is small or memory slow.  The others go in the order of the step, so
// that a kernel finds in the caches what it finds there in a step.
#include "ridge/runtime/rehearsal.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/process.h"
#include "ridge/plan/cost/roofline.h"

namespace ridge {
namespace {

constexpr int kFewestRounds = 4;  // the first warms up
constexpr int kMostRounds = 25;
// From here on the first run tells enough, though its data is not in the caches yet: the error is
// small, or made by few nodes.
constexpr double kLong_s = 2e-3, kLongForFew_s = 200e-6;
constexpr int kFewNodes = 2;

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
    const std::vector<std::byte>& pattern = PatternOf(value.type.dtype);
    const auto length = static_cast<int64_t>(pattern.size());
    std::byte* data = executor_.arena().data() + value.offset_bytes;
    const int threads = value.size_bytes < 4 * length ? 1 : executor_.threads();
    cpu::ParallelFor(threads, value.size_bytes, length, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += length)
        std::memcpy(data + at, pattern.data(), static_cast<size_t>(std::min(length, end - at)));
    });
  }

  // Drawn once for a type, since drawing takes longer than copying.
  const std::vector<std::byte>& PatternOf(DType dtype) {
    std::vector<std::byte>& pattern = patterns_[dtype];
    if (!pattern.empty()) return pattern;
    constexpr int64_t kElements = 16 * 1024;
    pattern.resize(static_cast<size_t>(kElements * BytesPerElement(dtype)));
    for (int64_t i = 0; i < kElements; ++i)
      StoreFromDouble(dtype, pattern.data(), i, IsFloat(dtype) ? Draw() : 0);
    return pattern;
  }

  double Draw() {
    state_ = state_ * 1664525 + 1013904223;
    return 0.02 * (state_ >> 8) * 0x1p-24 + 0.001;
  }

  Executor& executor_;
  std::vector<bool> filled_;  // by persistent value
  std::map<DType, std::vector<std::byte>> patterns_;
  uint32_t state_ = 12345;
};

// The median; of two the smaller, since the larger is the one that was suspected.
double Typical(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// By the nominal device, not by the profile: one that was measured on a busy machine would say that
// nothing can be afforded.
double ExpectedSeconds(const PlannedNode& node, const DeviceProfile& nominal) {
  const CostClass cost_class = node.def == nullptr ? CostClass::kMove : node.def->cost_class;
  const DType dtype = node.call.outputs.empty() ? DType::kF32 : node.call.outputs[0].dtype;
  return EstimateTime(nominal, cost_class, dtype, node.cost, node.choice).seconds;
}

// Nodes of equal kernel and types: equal seconds.
struct Candidate {
  size_t node;  // the first of them
  int count = 1;
  double expected_s = 0;
};

// A first run of many times what was expected may have been disturbed: once more.
int RoundsOf(const Candidate& candidate, double seconds) {
  const double enough = candidate.count <= kFewNodes ? kLongForFew_s : kLong_s;
  if (seconds < enough) return kFewestRounds;
  return seconds < 3 * candidate.expected_s ? 1 : 2;
}

// The cheap ones first.
std::vector<Candidate> Candidates(const StepPlan& step, int threads,
                                  const std::map<std::string, double>& timed_before) {
  const DeviceProfile nominal = NominalProfile(threads);
  std::vector<Candidate> candidates;
  std::map<std::string_view, size_t> known;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    if (timed_before.contains(node.choice.key)) continue;
    const auto [found, added] = known.try_emplace(node.choice.key, candidates.size());
    if (added) {
      candidates.push_back({n, 1, ExpectedSeconds(node, nominal)});
    } else {
      ++candidates[found->second].count;
    }
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.expected_s < b.expected_s; });
  return candidates;
}

class StepRehearsal {
 public:
  StepRehearsal(Executor& executor, int index, double budget_s)
      : executor_(executor),
        index_(index),
        step_(executor.program().steps[static_cast<size_t>(index)]),
        budget_s_(budget_s),
        begin_s_(MonotonicSeconds()) {}

  Status Run(DataFiller& filler, std::map<std::string, double>& kernel_s) {
    RIDGE_RETURN_IF_ERROR(FirstRound(filler, kernel_s));
    for (int round = 1; round < kMostRounds; ++round) {
      const bool required = round < kFewestRounds;
      if (!required && MonotonicSeconds() > begin_s_ + budget_s_) break;
      for (Timed& timed : timed_) {
        if (required && round >= timed.rounds) continue;
        RIDGE_ASSIGN_OR_RETURN(const double s, TimeNode(timed.node));
        timed.seconds.push_back(s);
      }
    }
    for (const Timed& timed : timed_)
      kernel_s[step_.nodes[timed.node].choice.key] = Typical(timed.seconds);
    return Status();
  }

 private:
  struct Timed {
    size_t node;
    int rounds;  // that it needs
    std::vector<double> seconds;
  };

  // Takes nodes in until all their rounds would take the budget.
  Status FirstRound(DataFiller& filler, const std::map<std::string, double>& timed_before) {
    double planned_s = 0;
    for (const Candidate& candidate : Candidates(step_, executor_.threads(), timed_before)) {
      const double expected_s = candidate.expected_s;
      if (planned_s + expected_s * RoundsOf(candidate, expected_s) > budget_s_) break;
      const double begin_s = MonotonicSeconds();
      filler.FillInputs(step_, step_.nodes[candidate.node]);
      planned_s += MonotonicSeconds() - begin_s;
      RIDGE_ASSIGN_OR_RETURN(const double s, TimeNode(candidate.node));
      const int rounds = RoundsOf(candidate, s);
      planned_s += s * rounds;
      timed_.push_back({candidate.node, rounds, {}});
      if (rounds < kFewestRounds) timed_.back().seconds.push_back(s);
    }
    std::sort(timed_.begin(), timed_.end(),
              [](const Timed& a, const Timed& b) { return a.node < b.node; });
    return Status();
  }

  Result<double> TimeNode(size_t n) {
    return executor_.TimeNode(index_, static_cast<int>(n), /*slot=*/0);
  }

  Executor& executor_;
  const int index_;
  const StepPlan& step_;
  std::vector<Timed> timed_;  // in the order of the step
  const double budget_s_, begin_s_;
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
