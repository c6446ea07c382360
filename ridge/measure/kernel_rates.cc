#include "ridge/measure/kernel_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/lower/kernel_rates.h"
#include "ridge/measure/profile.h"
#include "ridge/plan/cost/times.h"
#include "ridge/train/job/job.h"

namespace ridge {
namespace {

struct RateTraining {
  const char* model;
  int64_t batch;
};

// Each kind of kernel, small and large.
constexpr RateTraining kTrainings[] = {{"mlp:hidden=384", 64},
                                       {"mlp:hidden=768,layers=3", 1024},
                                       {"cnn:filters=16", 96},
                                       {"cnn:filters=48", 1536},
                                       {"resnet18:image=96", 8},
                                       {"resnet34", 4},
                                       {"unet:image=96", 2},
                                       {"unet:image=192", 1},
                                       {"mobilenet_v3_large", 8},
                                       {"efficientnet_v2_s:image=224", 2},
                                       {"convnext_tiny", 2},
                                       {"gpt:hidden=256,layers=3,heads=4,vocab=2000", 4},
                                       {"llama:layers=2", 4},
                                       {"bert:hidden=384,layers=2,heads=6", 8},
                                       {"vit_ti:hidden=256,heads=4,layers=4", 4},
                                       {"lstm:hidden=256,vocab=8000", 16},
                                       {"lstm:hidden=160,vocab=28000", 12}};

using Runs = std::map<std::string, std::vector<TimedWork>>;  // by RateKey

// A machine that is busy for seconds slows all steps of a training: each is timed twice, with the
// others between, and the faster of both counts.
constexpr int kPasses = 2;

// Nodes beside others in a parallel region do not have the machine to themselves.
void AddRuns(const StepMeasurement& measured, Runs& runs) {
  const StepPlan& step = *measured.step;
  std::vector<bool> alone(step.nodes.size(), true);
  ForEachRegion(step.body, [&](const Region& region) {
    if (region.kind != Region::Kind::kParallel) return;
    for (int n = region.first; n < region.end; ++n) alone[static_cast<size_t>(n)] = false;
  });
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    if (!alone[n] || node.choice.one_thread) continue;
    const double seconds = measured.node_s[n] / static_cast<double>(RunsOf(step, n));
    const Work work = WorkOf(node);
    runs[RateKey(node.choice.kernel, work)].push_back({RatedWork(work), seconds});
  }
}

Result<Runs> RunsOfTraining(const RateTraining& training, const char* precision,
                            const Machine& machine) {
  ProfileRequest request;
  request.options.model = training.model;
  request.options.batch = training.batch;
  request.options.precision = precision;
  request.options.data = "synthetic";
  request.steps = 3;
  RIDGE_ASSIGN_OR_RETURN(const ProfiledRun run, ProfileRun(request, machine));
  Runs runs;
  AddRuns(run.profile.measured, runs);
  return runs;
}

// The faster of two times of the same training.  Where its plan was another one, both count.
void TakeFaster(const Runs& again, Runs& runs) {
  for (const auto& [kernel, timed] : again) {
    std::vector<TimedWork>& known = runs[kernel];
    const bool alike =
        std::equal(known.begin(), known.end(), timed.begin(), timed.end(),
                   [](const TimedWork& a, const TimedWork& b) { return a.work == b.work; });
    if (!alike) {
      known.insert(known.end(), timed.begin(), timed.end());
      continue;
    }
    for (size_t i = 0; i < known.size(); ++i)
      known[i].seconds = std::min(known[i].seconds, timed[i].seconds);
  }
}

using Say = std::function<void(const std::string&)>;

// Of all trainings in one precision.
Result<std::vector<Runs>> TimeTrainings(const char* precision, const Machine& machine,
                                        const Say& say) {
  std::vector<Runs> trainings(std::size(kTrainings));
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t t = 0; t < trainings.size(); ++t) {
      say(fmt::format("timing kernels: {}, batch {}, {}, {} of {}", kTrainings[t].model,
                      kTrainings[t].batch, precision, pass + 1, kPasses));
      RIDGE_ASSIGN_OR_RETURN(const Runs runs, RunsOfTraining(kTrainings[t], precision, machine));
      TakeFaster(runs, trainings[t]);
    }
  }
  return trainings;
}

}  // namespace

Result<std::map<std::string, std::vector<KernelRate>>> MeasureKernelRates(const Machine& machine,
                                                                          const Say& say) {
  Runs all;
  for (const char* precision : {"f32", "bf16"}) {
    if (!machine.query().Multiplies(NamedOperands(precision))) continue;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Runs> trainings,
                           TimeTrainings(precision, machine, say));
    for (const Runs& runs : trainings) {
      for (const auto& [kernel, timed] : runs)
        all[kernel].insert(all[kernel].end(), timed.begin(), timed.end());
    }
  }
  std::map<std::string, std::vector<KernelRate>> rates;
  for (const auto& [kernel, timed] : all) rates[kernel] = CondenseRates(timed);
  return rates;
}

}  // namespace ridge
