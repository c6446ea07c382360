#include "tests/text/plan_command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "ridge/backend/cpu/host_rules.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/graph/batch_axis.h"
#include "ridge/learn/training_graph.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/split_norms.h"
#include "ridge/plan/planner.h"

namespace ridge {
namespace {

struct Options {
  bool train = false;
  int64_t slices = 1;
  int streams = 1;
  int rank = 0, ranks = 0;  // 0: sums run
  bool overlap = false;
  TrainingGraphOptions graph;
};

Result<Options> ParseOptions(const std::string& text) {
  Options options;
  options.graph.optimizer.name = "sgd";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const int64_t number = equals == std::string::npos ? 0 : std::atoll(&word[equals + 1]);
    if (word == "train") {
      options.train = true;
    } else if (key == "slices") {
      options.slices = number;
    } else if (key == "rank") {
      options.rank = static_cast<int>(number);
    } else if (key == "ranks") {
      options.ranks = static_cast<int>(number);
    } else if (word == "overlap") {
      options.overlap = true;
    } else if (key == "streams") {
      options.streams = static_cast<int>(number);
    } else if (key == "accumulate") {
      options.graph.accumulate = number;
    } else if (word == "loss_scale") {
      options.graph.loss_scale = LossScaleOptions();
    } else if (key == "clip") {
      options.graph.clip_norm = static_cast<double>(number);
    } else {
      return Status(ErrorCode::kInvalidArgument, "plan: '" + word + "' is not an option");
    }
  }
  return options;
}

Result<std::vector<NamedGraph>> TrainingSteps(Graph forward, Options options) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection all, ParsePassSpec(""));
  RIDGE_ASSIGN_OR_RETURN(forward, RunPasses(std::move(forward), ForwardPasses(all), HostRules()));
  if (options.slices > 1) {
    RIDGE_ASSIGN_OR_RETURN(const ForwardInfo facts, InspectForward(forward));
    RIDGE_ASSIGN_OR_RETURN(
        const BatchAxes axes,
        FindBatchAxes(forward, {facts.loss}, facts.data_inputs,
                      options.ranks > 0 ? SliceOrder::kInStep : SliceOrder::kOneByOne));
    options.graph.slices = options.slices;
    if (options.ranks > 0)
      options.graph.share = SliceShare{options.slices, options.rank, options.ranks};
    options.graph.mean_of_slices = axes.axes[static_cast<size_t>(facts.loss)] == kPartialMean;
    RIDGE_ASSIGN_OR_RETURN(forward, SliceGraph(forward, axes, options.slices));
  }
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> steps,
                         BuildTrainingGraphs(forward, options.graph));
  for (NamedGraph& step : steps) {
    RIDGE_ASSIGN_OR_RETURN(step.graph, RunPasses(std::move(step.graph), all, HostRules()));
    RIDGE_ASSIGN_OR_RETURN(step.graph, SplitNorms(std::move(step.graph)));
  }
  return steps;
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string Run() {
    text_ = fmt::format("arena {} B: persistent {}, scratch of the largest step; at least {}\n",
                        program_.arena_bytes, program_.persistent_bytes, program_.bound_bytes);
    for (const PersistentValue& value : program_.persistent)
      text_ += fmt::format("  {} {} -> {}..{}\n", value.name, TypeToString(value.type),
                           value.offset_bytes, value.offset_bytes + value.size_bytes);
    for (const StepPlan& step : program_.steps) PrintStep(step);
    return text_;
  }

 private:
  void PrintStep(const StepPlan& step) {
    text_ += fmt::format("{}: {}scratch {} B, at least {}\n", step.name,
                         step.slices > 1 ? fmt::format("{} slices, ", step.slices) : "",
                         step.scratch_bytes, step.bound_bytes);
    PrintRegion(step, step.body, "  ");
  }

  void PrintRegion(const StepPlan& step, const Region& region, std::string indent) {
    if (region.kind == Region::Kind::kLoop) {
      text_ += fmt::format("{}loop{}, {} times\n", indent, region.in_step ? " in step" : "",
                           region.trips);
      indent += "  ";
    }
    if (region.parts.empty()) return PrintNodes(step, region, indent);
    if (region.kind == Region::Kind::kParallel) text_ += indent + "parallel\n";
    for (size_t i = 0; i < region.parts.size(); ++i) {
      if (region.kind != Region::Kind::kParallel) {
        PrintRegion(step, region.parts[i], indent);
        continue;
      }
      text_ += fmt::format("{}  stream {}\n", indent, i);
      PrintRegion(step, region.parts[i], indent + "    ");
    }
  }

  void PrintNodes(const StepPlan& step, const Region& region, const std::string& indent) {
    const std::vector<NodePlace> places = NodePlaces(step);
    for (int n = region.first; n < region.end; ++n) {
      const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
      text_ += fmt::format("{}{} {}", indent, n, node.op);
      for (const int value : node.outputs) text_ += "  " + Place(step, value);
      const NodePlace& place = places[static_cast<size_t>(n)];
      if (place.skips_first) text_ += place.trips == 0 ? "  [left out]" : "  [not the first time]";
      text_ += place.once ? "  [once]\n" : "\n";
    }
  }

  std::string Place(const StepPlan& step, int index) const {
    const PlannedValue& value = step.values[static_cast<size_t>(index)];
    std::string place = value.name + " -> ";
    if (const int sum = FirstWrittenIn(step, index); sum >= 0)
      place += "first in " + program_.persistent[static_cast<size_t>(sum)].name + ", ";
    if (value.persistent)
      return place + program_.persistent[static_cast<size_t>(value.persistent_index)].name;
    if (value.shares_with >= 0)
      return place + "in " + step.values[static_cast<size_t>(value.shares_with)].name;
    return place + fmt::format("{}..{}, read to {}", value.offset_bytes,
                               value.offset_bytes + value.size_bytes, value.live.last);
  }

  const Program& program_;
  std::string text_;
};

Result<std::string> Plan(const Graph& graph, const std::string& text) {
  RIDGE_ASSIGN_OR_RETURN(const Options options, ParseOptions(text));
  std::vector<NamedGraph> steps = {{"step", graph}};
  if (options.train) {
    RIDGE_ASSIGN_OR_RETURN(steps, TrainingSteps(graph, options));
  }
  const std::unique_ptr<Backend> backend = MakeReferenceBackend();
  const PlanOptions how = {.inter_op = {.streams = options.streams, .always = true},
                           .overlap_exchange = options.overlap};
  RIDGE_ASSIGN_OR_RETURN(const Program program,
                         PlanProgram(graph.name, steps, *backend, backend->nominal(), how));
  return Printer(program).Run();
}

}  // namespace

std::string PlanText(const Graph& graph, const std::string& options) {
  const Result<std::string> text = Plan(graph, options);
  return text.ok() ? *text : text.status().message() + "\n";
}

}  // namespace ridge
