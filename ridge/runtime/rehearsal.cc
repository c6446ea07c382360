// A step that fits the budget twice is run whole, node by node: only that gives each kernel the
// cache contents of a step.
//
// In a longer step, kernels of equal key are timed once, on one of their nodes.  The first round
// times cheap kernels first until most of the budget is reserved, by the clock and not by the
// roofline, which is wrong by factors for small kernels and slow memory.  The rest of the budget
// times expensive kernels once, first one of each name: its measured over modelled seconds
// scale the nodes of that name that are not timed.  Later rounds follow the order of the step, so
// that the caches hold what they hold in a step.
#include "ridge/runtime/rehearsal.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "ridge/core/median.h"
#include "ridge/core/process.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/runtime/timing_data.h"

namespace ridge {
namespace {

constexpr int kFewestRounds = 4;  // the first warms up
constexpr int kMostRounds = 25;
// Above this time one run suffices, although it starts with cold caches: the error is small, or few
// nodes have it.
constexpr double kLong_s = 2e-3, kLongForFew_s = 200e-6;
constexpr int kFewNodes = 2;
constexpr double kSuspect = 1.5;   // times what was expected
constexpr double kMostWrong = 2;   // of a kind over all; beyond it the measurement was disturbed
constexpr double kForCheap = 0.6;  // of the budget
constexpr double kOverrun = 2;     // budgets, where the roofline was wrong about a whole step

// Fills only the operands of kernels that are timed: filling all of a large model would exceed the
// time budget, and make memory resident for a plan that may never run.
class DataFiller {
 public:
  explicit DataFiller(Executor& executor)
      : executor_(executor), filled_(executor.program().persistent.size(), false) {}

  Status FillInputs(const StepPlan& step, const PlannedNode& node) {
    for (int input : node.inputs) {
      if (input >= 0 && step.values[static_cast<size_t>(input)].persistent)
        RIDGE_RETURN_IF_ERROR(
            Fill(static_cast<size_t>(step.values[static_cast<size_t>(input)].persistent_index)));
    }
    return Status();
  }

 private:
  Status Fill(size_t index) {
    if (filled_[index]) return Status();
    filled_[index] = true;
    const PersistentValue& value = executor_.program().persistent[index];
    return data_.Fill(value.type.dtype, executor_.backend(), executor_.arena(), value.offset_bytes,
                      value.size_bytes);
  }

  Executor& executor_;
  std::vector<bool> filled_;  // by persistent value
  TimingData data_;
};

// Of two the smaller, since the larger is the one that was suspected.
double Typical(std::vector<double> values) { return LowerQuantile(std::move(values), 0.5); }

// Nodes of equal kernel and types: equal seconds.
struct Candidate {
  size_t node;  // the first of them
  int count = 1;
  double expected_s = 0;
};

// A first run of many times what was expected may have been disturbed: it is repeated.
int RoundsOf(const Candidate& candidate, double seconds) {
  const double enough = candidate.count <= kFewNodes ? kLongForFew_s : kLong_s;
  if (seconds < enough) return kFewestRounds;
  return seconds < kSuspect * candidate.expected_s ? 1 : 2;
}

// Nodes of the host have their own model's.
double SecondsBy(const CostModel& device, const PlannedNode& node) {
  return node.on_host ? node.modelled_s : device.Seconds(WorkOf(node), node.choice);
}

// Of all nodes, one after the other: sections are not timed as such.
double SecondsBy(const CostModel& device, const StepPlan& step) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n)
    seconds += SecondsBy(device, step.nodes[n]) * static_cast<double>(RunsOf(step, n));
  return seconds;
}

// Cheapest first.
std::vector<Candidate> Candidates(const StepPlan& step, const CostModel& nominal,
                                  const std::map<std::string, double>& timed_before) {
  std::vector<Candidate> candidates;
  std::map<std::string_view, size_t> known;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    if (timed_before.contains(node.choice.key) || IsCollective(step, node)) continue;
    const auto [found, added] = known.try_emplace(node.choice.key, candidates.size());
    if (added) {
      candidates.push_back({n, 1, SecondsBy(nominal, node)});
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
  // Not by the profile: one that was measured on a busy machine would leave no kernel affordable.
  StepRehearsal(Executor& executor, const CostModel& nominal, int index, double budget_s)
      : executor_(executor),
        nominal_(nominal),
        index_(index),
        step_(executor.program().steps[static_cast<size_t>(index)]),
        budget_s_(budget_s),
        begin_s_(MonotonicSeconds()) {}

  Status Run(DataFiller& filler, std::map<std::string, double>& kernel_s) {
    if (2 * SecondsBy(nominal_, step_) <= budget_s_) return Walk(filler, kernel_s);
    RIDGE_RETURN_IF_ERROR(FirstRound(filler, kernel_s));
    double round_s = 0;  // the last one's
    for (int round = 1; round < kMostRounds; ++round) {
      const bool required = round < kFewestRounds;
      const double now_s = MonotonicSeconds();
      if (!required && now_s + round_s > begin_s_ + budget_s_) break;
      for (Timed& timed : timed_) {
        if (required && round >= timed.rounds) continue;
        RIDGE_ASSIGN_OR_RETURN(const double s, TimeNode(timed.node));
        timed.seconds.push_back(s);
      }
      round_s = MonotonicSeconds() - now_s;
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

  // All nodes, round after round; the first round warms up and counts only if it is the only one.
  Status Walk(DataFiller& filler, std::map<std::string, double>& kernel_s) {
    for (const PlannedNode& node : step_.nodes)
      RIDGE_RETURN_IF_ERROR(filler.FillInputs(step_, node));
    std::vector<std::vector<double>> seconds(step_.nodes.size());
    double longest_s = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      const double round_s = MonotonicSeconds();
      if (round > 1 && round_s + longest_s > begin_s_ + budget_s_) break;
      for (size_t n = 0; n < step_.nodes.size(); ++n) {
        if (MonotonicSeconds() > begin_s_ + kOverrun * budget_s_) break;
        if (IsCollective(step_, step_.nodes[n])) continue;
        RIDGE_ASSIGN_OR_RETURN(const double s, TimeNode(n));
        if (round == 1) seconds[n].clear();
        seconds[n].push_back(s);
      }
      const double now_s = MonotonicSeconds();
      longest_s = std::max(longest_s, now_s - round_s);
      // It loaded code: a library's, or a GPU's.  The others have the budget.
      if (round == 0 && now_s > begin_s_ + budget_s_) {
        begin_s_ = now_s;
        longest_s = 0;
      }
    }
    AddMeans(seconds, kernel_s);
    return Status();
  }

  void AddMeans(const std::vector<std::vector<double>>& seconds,
                std::map<std::string, double>& kernel_s) const {
    std::map<std::string, std::pair<double, int>> sums;
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      if (seconds[n].empty()) continue;
      auto& [sum, count] = sums[step_.nodes[n].choice.key];
      sum += Typical(seconds[n]);
      ++count;
    }
    for (const auto& [key, sum] : sums) kernel_s.try_emplace(key, sum.first / sum.second);
  }

  // Adds nodes until all their rounds would take the budget.
  Status FirstRound(DataFiller& filler, const std::map<std::string, double>& timed_before) {
    std::vector<Candidate> left = Candidates(step_, nominal_, timed_before);
    auto next = left.begin();
    for (; next != left.end(); ++next) {
      const double expected_s = next->expected_s;
      if (planned_s_ + expected_s * RoundsOf(*next, expected_s) > kForCheap * budget_s_) break;
      RIDGE_RETURN_IF_ERROR(TimeFirst(*next, filler));
    }
    // The expensive ones: those with the largest share of the step first, one of each kernel name.
    left.erase(left.begin(), next);
    std::stable_sort(left.begin(), left.end(), [](const Candidate& a, const Candidate& b) {
      return a.expected_s * a.count > b.expected_s * b.count;
    });
    std::set<std::string_view> kinds;
    std::vector<Candidate> others;
    const auto time = [&](const Candidate& candidate) {
      if (planned_s_ + candidate.expected_s > budget_s_) return Status();
      return TimeFirst(candidate, filler);
    };
    for (const Candidate& candidate : left) {
      if (kinds.insert(step_.nodes[candidate.node].choice.kernel).second) {
        RIDGE_RETURN_IF_ERROR(time(candidate));
      } else {
        others.push_back(candidate);
      }
    }
    for (const Candidate& candidate : others) RIDGE_RETURN_IF_ERROR(time(candidate));
    std::sort(timed_.begin(), timed_.end(),
              [](const Timed& a, const Timed& b) { return a.node < b.node; });
    return Status();
  }

  Status TimeFirst(const Candidate& candidate, DataFiller& filler) {
    const double begin_s = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(filler.FillInputs(step_, step_.nodes[candidate.node]));
    planned_s_ += MonotonicSeconds() - begin_s;
    RIDGE_ASSIGN_OR_RETURN(const double s, TimeNode(candidate.node));
    const int rounds = RoundsOf(candidate, s);
    planned_s_ += s * rounds;
    timed_.push_back({candidate.node, rounds, {}});
    if (rounds < kFewestRounds) timed_.back().seconds.push_back(s);
    return Status();
  }

  Result<double> TimeNode(size_t n) {
    return executor_.TimeNode(index_, static_cast<int>(n), /*slot=*/0);
  }

  Executor& executor_;
  const CostModel& nominal_;
  const int index_;
  const StepPlan& step_;
  std::vector<Timed> timed_;  // in the order of the step
  const double budget_s_;
  double begin_s_;
  double planned_s_ = 0;  // of the budget, reserved
};

// Runs the cheapest kernel of each name that was not timed: its first call maps generated code and
// library pages, which the process's memory then includes when it is read.  Of collectives the
// largest: what the library beneath takes for its messages grows with them.
Status RunOtherKinds(Executor& executor, const CostModel& nominal,
                     const std::map<std::string, double>& kernel_s, DataFiller& filler) {
  struct Cheapest {
    int step = 0, node = 0;
    double expected_s = 0;
  };
  std::map<std::string_view, Cheapest> kinds;
  std::set<std::string_view> timed;
  for (int s = 0; s < static_cast<int>(executor.program().steps.size()); ++s) {
    const StepPlan& step = executor.program().steps[static_cast<size_t>(s)];
    for (int n = 0; n < static_cast<int>(step.nodes.size()); ++n) {
      const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
      if (kernel_s.contains(node.choice.key)) timed.insert(node.choice.kernel);
      const double expected_s = SecondsBy(nominal, node);
      const auto [found, added] = kinds.try_emplace(node.choice.kernel, Cheapest{s, n, expected_s});
      const bool better = IsCollective(step, node) ? expected_s > found->second.expected_s
                                                   : expected_s < found->second.expected_s;
      if (!added && better) found->second = {s, n, expected_s};
    }
  }
  for (const auto& [kernel, at] : kinds) {
    if (timed.contains(kernel)) continue;
    const StepPlan& step = executor.program().steps[static_cast<size_t>(at.step)];
    const PlannedNode& node = step.nodes[static_cast<size_t>(at.node)];
    RIDGE_RETURN_IF_ERROR(filler.FillInputs(step, node));
    const Status ran = executor.TimeNode(at.step, at.node, /*slot=*/0).status();
    const bool alone = IsCollective(step, node) && ran.code() == ErrorCode::kUnavailable;
    if (!ran.ok() && !alone) return ran;
  }
  return Status();
}

}  // namespace

Result<std::map<std::string, double>> Rehearse(Executor& executor, const CostModel& nominal,
                                               double budget_s) {
  DataFiller filler(executor);
  std::map<std::string, double> kernel_s;
  const auto count = static_cast<double>(executor.program().steps.size());
  for (int i = 0; i < static_cast<int>(executor.program().steps.size()); ++i)
    RIDGE_RETURN_IF_ERROR(
        StepRehearsal(executor, nominal, i, budget_s / count).Run(filler, kernel_s));
  RIDGE_RETURN_IF_ERROR(RunOtherKinds(executor, nominal, kernel_s, filler));
  return kernel_s;
}

namespace {

struct Sums {
  double measured_s = 0, profiled_s = 0;
};

// By kernel name, over the kernels that were timed.
std::map<std::string_view, Sums> SumKinds(const CostModel& profiled,
                                          const std::map<std::string, double>& kernel_s,
                                          const Program& program) {
  std::map<std::string_view, Sums> kinds;
  std::set<std::string_view> counted;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      const auto timed = kernel_s.find(node.choice.key);
      if (timed == kernel_s.end() || !counted.insert(node.choice.key).second) continue;
      Sums& sums = kinds[node.choice.kernel];
      sums.measured_s += timed->second;
      sums.profiled_s += SecondsBy(profiled, node);
    }
  }
  return kinds;
}

}  // namespace

namespace {

struct Ratio {
  double ratio = 1, weight = 0;
};

double WeightedMedian(std::vector<Ratio> ratios) {
  std::sort(ratios.begin(), ratios.end(),
            [](const Ratio& a, const Ratio& b) { return a.ratio < b.ratio; });
  double rest = 0;
  for (const Ratio& ratio : ratios) rest += ratio.weight / 2;
  for (const Ratio& ratio : ratios) {
    rest -= ratio.weight;
    if (rest <= 0) return ratio.ratio;
  }
  return 1;
}

}  // namespace

double RehearsedOverProfiled(const std::map<std::string, double>& kernel_s,
                             const CostModel& profiled, const Program& program) {
  std::vector<Ratio> ratios;
  std::set<std::string_view> counted;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      const auto timed = kernel_s.find(node.choice.key);
      if (timed == kernel_s.end() || !counted.insert(node.choice.key).second) continue;
      const double profiled_s = SecondsBy(profiled, node);
      if (profiled_s > 0 && !node.on_host)
        ratios.push_back({timed->second / profiled_s, std::min(timed->second, profiled_s)});
    }
  }
  return WeightedMedian(std::move(ratios));
}

bool Contradicts(double rehearsed_over_profiled) {
  constexpr double kFaster = 0.5, kSlower = 4;
  return rehearsed_over_profiled < kFaster || rehearsed_over_profiled > kSlower;
}

void EstimateTimesBy(const std::map<std::string, double>& kernel_s, const CostModel& profiled,
                     Program& program) {
  const auto kinds = SumKinds(profiled, kernel_s, program);
  const double median = RehearsedOverProfiled(kernel_s, profiled, program);
  const double usual = Contradicts(median) ? median : 1;
  EstimateTimes(profiled, program);
  for (StepPlan& step : program.steps) {
    for (PlannedNode& node : step.nodes) {
      const auto timed = kernel_s.find(node.choice.key);
      if (timed != kernel_s.end()) node.measured_s = timed->second;
      const auto kind = kinds.find(node.choice.kernel);
      const bool seen = kind != kinds.end() && kind->second.profiled_s > 0;
      const double expected = node.on_host ? 1 : usual;
      const double factor = seen ? kind->second.measured_s / kind->second.profiled_s : expected;
      node.correction = std::clamp(factor, expected / kMostWrong, expected * kMostWrong);
    }
  }
}

}  // namespace ridge
