#include "ridge/train/job/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace ridge {
namespace {

constexpr int64_t kMostSamples = 1024;

std::vector<int64_t> DivisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

bool IsFaster(const LayoutCost& a, const LayoutCost& b) {
  if (a.seconds.all() != b.seconds.all()) return a.seconds.all() < b.seconds.all();
  if (a.bytes.all() != b.bytes.all()) return a.bytes.all() < b.bytes.all();
  return a.choice.zero < b.choice.zero;
}

class Search {
 public:
  Search(const LayoutRequest& request, LocalSteps& steps)
      : request_(request),
        devices_(request.links.all.count()),
        batch_(request.options.batch * request.options.accumulate),
        steps_(steps) {}

  Result<LayoutsFound> Run() {
    RIDGE_ASSIGN_OR_RETURN(whole_, steps_.Planned(1, false, 1));
    for (const int64_t tensor : DivisorsOf(devices_)) {
      if (tensor > request_.links.all.per_node) break;
      for (const bool sequence : {false, true}) {
        if (sequence && tensor == 1) continue;
        if (!sequence && tensor > 1 && request_.only_sequence) continue;
        if (const Status status = TryTensor(tensor, sequence); !status.ok()) {
          if (tensor == 1) return status;
          if (found_.no_tensor.empty()) found_.no_tensor = status.message();
        }
      }
    }
    if (found_.fitting.empty() && !found_.smallest && found_.variables_too_large == 0) {
      return InvalidArgument(fmt::format(
          "mesh auto: no number of ranks that divides {} devices divides the batch of {}. hint: "
          "--batch {}",
          devices_, batch_, devices_));
    }
    RIDGE_RETURN_IF_ERROR(Refine());
    found_.planned_steps = steps_.planned();
    return std::move(found_);
  }

 private:
  // Fails where the model has nothing for the axis to cut.
  Status TryTensor(int64_t tensor, bool sequence) {
    RIDGE_RETURN_IF_ERROR(steps_.Planned(tensor, sequence, 1).status());
    for (const int64_t pipeline : DivisorsOf(devices_ / tensor)) {
      LayoutChoice choice = {.pipeline = pipeline, .tensor = tensor, .sequence = sequence};
      choice.data = devices_ / tensor / pipeline;
      if (batch_ % choice.data != 0) continue;
      for (choice.zero = 0; choice.zero <= (choice.data > 1 ? 3 : 0); ++choice.zero) {
        if (AreVariablesTooLarge(choice)) continue;
        RIDGE_RETURN_IF_ERROR(TryMicroBatches(choice));
      }
    }
    return Status();
  }

  bool AreVariablesTooLarge(const LayoutChoice& choice) {
    const int64_t bytes = LeastBytes(*whole_, choice);
    if (bytes <= request_.limit_bytes) return false;
    int64_t& least = found_.least_variable_bytes;
    if (found_.variables_too_large++ == 0 || bytes < least) least = bytes;
    return true;
  }

  Status TryMicroBatches(LayoutChoice choice) {
    const int64_t samples = batch_ / choice.data;
    for (choice.samples = 1; choice.samples <= std::min(samples, kMostSamples);
         choice.samples *= 2) {
      if (samples % choice.samples != 0) break;
      choice.micro_batches = samples / choice.samples;
      RIDGE_ASSIGN_OR_RETURN(const LocalStep step,
                             steps_.At(choice.tensor, choice.sequence, choice.samples));
      if (!Add(step, choice)) break;
    }
    return Status();
  }

  // With and without recomputing.  Whether one of them fits.
  bool Add(const LocalStep& step, LayoutChoice choice) {
    bool any = false;
    for (const bool recompute : {false, true}) {
      choice.recompute = recompute;
      const std::optional<LayoutCost> cost =
          ComposeLayout(step, choice, request_.links.all, request_.links.wire_share);
      if (!cost) continue;
      if (cost->bytes.all() <= request_.limit_bytes) {
        found_.fitting.push_back(*cost);
        any = true;
        break;  // computing again would only take longer
      }
      ++found_.too_large;
      if (!found_.smallest || cost->bytes.all() < found_.smallest->bytes.all())
        found_.smallest = cost;
    }
    return any;
  }

  // Of each mesh the fastest.
  void KeepOneOfMesh() {
    std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
    std::erase_if(found_.fitting, [&](const LayoutCost& cost) {
      return !seen.emplace(cost.choice.pipeline, cost.choice.data, cost.choice.tensor).second;
    });
  }

  // The fastest ones by a plan of their own, and in order.
  Status Refine() {
    std::sort(found_.fitting.begin(), found_.fitting.end(), IsFaster);
    found_.fit = static_cast<int64_t>(found_.fitting.size());
    KeepOneOfMesh();
    const size_t count = std::min(request_.refined, found_.fitting.size());
    for (size_t i = 0; i < count; ++i) {
      LayoutCost& cost = found_.fitting[i];
      const LayoutChoice& choice = cost.choice;
      RIDGE_ASSIGN_OR_RETURN(const LocalStep* step,
                             steps_.Planned(choice.tensor, choice.sequence, choice.samples));
      const std::optional<LayoutCost> own =
          ComposeLayout(*step, choice, request_.links.all, request_.links.wire_share);
      if (own && own->bytes.all() <= request_.limit_bytes) cost = *own;
    }
    std::sort(found_.fitting.begin(), found_.fitting.end(), IsFaster);
    return Status();
  }

  const LayoutRequest& request_;
  const int64_t devices_, batch_;
  LocalSteps& steps_;
  const LocalStep* whole_ = nullptr;  // of one device
  LayoutsFound found_;
};

}  // namespace

Result<LayoutsFound> SearchLayouts(const LayoutRequest& request, const Machine& machine) {
  LocalSteps steps(request.options, request.links, machine);
  return SearchLayouts(request, steps);
}

Result<LayoutsFound> SearchLayouts(const LayoutRequest& request, LocalSteps& steps) {
  return Search(request, steps).Run();
}

Result<LayoutCost> PlanLayout(const LayoutRequest& request, const LayoutChoice& choice,
                              const Machine& machine) {
  LocalSteps steps(request.options, request.links, machine);
  RIDGE_ASSIGN_OR_RETURN(const LocalStep* step,
                         steps.Planned(choice.tensor, choice.sequence, choice.samples));
  const std::optional<LayoutCost> cost =
      ComposeLayout(*step, choice, request.links.all, request.links.wire_share);
  if (cost) return *cost;
  return InvalidArgument(fmt::format(
      "mesh p={}: '{}' has {} blocks between which a pipeline can be cut. hint: p={}",
      choice.pipeline, request.options.model, step->blocks.size(), step->blocks.size()));
}

}  // namespace ridge
