// Reorders are timed too, since the cost of a choice includes them.  Kernels that the nominal
// device ranks far behind the best (the reference) are not timed: they would take seconds each.
#include "ridge/measure/tune_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/measure/bench_job.h"
#include "ridge/measure/candidate_recorder.h"
#include "ridge/runtime/kernel_timer.h"
#include "ridge/train/load/forward.h"

namespace ridge {
namespace {

constexpr double kFarBehind = 20;  // times the efficiency
constexpr int kMostPlans = 6;      // another layout leads to other kernels after it
constexpr int kFewestSteps = 4;
constexpr double kSteps_s = 3;

std::vector<KernelChoice> WorthTiming(const RecordedCandidates& candidates) {
  double best = 0;
  for (const KernelChoice& choice : candidates.choices) best = std::max(best, choice.efficiency);
  std::vector<KernelChoice> worth;
  for (const KernelChoice& choice : candidates.choices) {
    if (choice.efficiency * kFarBehind > best) worth.push_back(choice);
  }
  return worth;
}

// Layouts are told where one is not row-major.
std::string KernelText(const PlannedNode& node, const Backend& backend) {
  std::string text = node.choice.kernel;
  const auto plain = [](const std::vector<LayoutId>& layouts) {
    return std::all_of(layouts.begin(), layouts.end(),
                       [](LayoutId layout) { return layout == kRowMajor; });
  };
  if (plain(node.choice.input_layouts) && plain(node.choice.output_layouts)) return text;
  const auto add = [&](const std::vector<LayoutId>& layouts) {
    for (const LayoutId layout : layouts) text += " " + backend.LayoutName(layout);
  };
  add(node.choice.input_layouts);
  text += " ->";
  add(node.choice.output_layouts);
  return text;
}

class Tuner {
 public:
  Tuner(const TrainOptions& options, const Machine& machine,
        std::map<std::string, double>& kernel_s)
      : options_(options), machine_(machine), kernel_s_(kernel_s), tuned_(machine) {
    machine_.kernel_s.clear();
    tuned_.kernel_s = kernel_s;
  }

  Result<TuneReport> Run() {
    RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options_));
    RIDGE_ASSIGN_OR_RETURN(const PlannedJob usual,
                           PlanTrainingOnly(options_, forward.graph, machine_));
    options_.slices = usual.options.slices;
    RIDGE_RETURN_IF_ERROR(CheckFits(usual));
    RIDGE_RETURN_IF_ERROR(TimeAll(forward.graph));
    RIDGE_ASSIGN_OR_RETURN(const PlannedJob tuned,
                           PlanTrainingOnly(options_, forward.graph, tuned_));
    Compare(*usual.program.Find("train"), *tuned.program.Find("train"));
    RIDGE_ASSIGN_OR_RETURN(report_.usual_step_s, TimeSteps(machine_));
    report_.tuned_step_s = report_.usual_step_s;
    if (!report_.changed.empty()) {
      RIDGE_ASSIGN_OR_RETURN(report_.tuned_step_s, TimeSteps(tuned_));
    }
    if (report_.faster()) kernel_s_ = std::move(tuned_.kernel_s);
    return std::move(report_);
  }

 private:
  Status TimeAll(const Graph& forward) {
    for (int plan = 0; plan < kMostPlans; ++plan) {
      CandidateRecorder recorder(*machine_.backend);
      Machine asked = tuned_;
      asked.backend = &recorder;
      RIDGE_RETURN_IF_ERROR(PlanTrainingOnly(options_, forward, asked).status());
      bool news = false;
      for (const auto& [keys, candidates] : recorder.recorded()) {
        RIDGE_ASSIGN_OR_RETURN(const bool timed, TimeOne(candidates));
        news = news || timed;
      }
      if (!news) break;
    }
    return Status();
  }

  // False when there is no choice, or all candidates are timed.
  Result<bool> TimeOne(const RecordedCandidates& candidates) {
    const std::vector<KernelChoice> choices = WorthTiming(candidates);
    if (candidates.op != nullptr && choices.size() < 2) return false;
    const auto known = [&](const KernelChoice& choice) {
      return tuned_.kernel_s.contains(choice.key);
    };
    if (std::all_of(choices.begin(), choices.end(), known)) return false;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                           TimeKernels(*machine_.backend, candidates.op, candidates.call, choices));
    // What is known has decided for other models.
    for (size_t i = 0; i < choices.size(); ++i)
      tuned_.kernel_s.try_emplace(choices[i].key, seconds[i]);
    ++report_.calls;
    report_.kernels += static_cast<int64_t>(choices.size());
    return true;
  }

  void Compare(const StepPlan& usual, const StepPlan& tuned) {
    std::map<std::string, const PlannedNode*> before;
    for (const PlannedNode& node : usual.nodes) before[node.name] = &node;
    for (const PlannedNode& node : tuned.nodes) {
      const auto found = before.find(node.name);
      if (node.def == nullptr || found == before.end()) continue;
      if (found->second->choice.key == node.choice.key) continue;
      report_.changed.push_back({node.name, node.op, KernelText(*found->second, *machine_.backend),
                                 KernelText(node, *machine_.backend), SecondsOf(*found->second),
                                 SecondsOf(node)});
    }
    std::stable_sort(report_.changed.begin(), report_.changed.end(),
                     [](const TunedNode& a, const TunedNode& b) {
                       return a.usual_s - a.tuned_s > b.usual_s - b.tuned_s;
                     });
  }

  double SecondsOf(const PlannedNode& node) const {
    const auto timed = tuned_.kernel_s.find(node.choice.key);
    return timed == tuned_.kernel_s.end() ? node.measured_s.value_or(node.modelled_s)
                                          : timed->second;
  }

  // The least of some steps.
  Result<double> TimeSteps(const Machine& machine) const {
    RIDGE_ASSIGN_OR_RETURN(const auto job,
                           BenchJob::Create(options_, /*run=*/"", /*rehearse_s=*/0, machine));
    RIDGE_RETURN_IF_ERROR(job->FillBatch());
    double least = 0, spent = 0;
    for (int step = 0; step < kFewestSteps || spent < kSteps_s; ++step) {
      RIDGE_ASSIGN_OR_RETURN(const StepRunner::Update one, job->RunStep());
      spent += one.seconds;
      least = step == 0 ? one.seconds : std::min(least, one.seconds);
    }
    return least;
  }

  TrainOptions options_;
  Machine machine_;  // chooses by the nominal device
  std::map<std::string, double>& kernel_s_;
  Machine tuned_;  // chooses by measured times
  TuneReport report_;
};

}  // namespace

Result<TuneReport> TuneKernels(const TrainOptions& options, const Machine& machine,
                               std::map<std::string, double>& kernel_s) {
  return Tuner(options, machine, kernel_s).Run();
}

}  // namespace ridge
