#include "ridge/measure/bench_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "ridge/core/median.h"
#include "ridge/core/process.h"
#include "ridge/core/version.h"
#include "ridge/learn/random_inputs.h"
#include "ridge/learn/training_graph.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/loop/run_once.h"

namespace ridge {
namespace {

// The labels of a graph that has a loss; nothing of one that has none.
std::vector<std::string> LabelNames(const Graph& forward) {
  const Result<ForwardInfo> facts = InspectForward(forward);
  if (!facts.ok() || facts->label == kNoValue) return {};
  return {forward.value(facts->label).name};
}

Result<std::vector<double>> TimeRuns(Executor& executor, int64_t runs) {
  std::vector<double> seconds(static_cast<size_t>(runs));
  for (double& one : seconds) {
    const double begin = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(executor.Run(/*step=*/0, /*slot=*/0));
    one = MonotonicSeconds() - begin;
  }
  return seconds;
}

}  // namespace

Result<BenchRunResult> BenchRun(const BenchRunRequest& request, const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, LoadModel({.model = request.model,
                                                         .batch = request.batch,
                                                         .dims = request.dims,
                                                         .training = false}));
  RIDGE_ASSIGN_OR_RETURN(const NamedGraph graph, BuildInferenceGraph(forward, LabelNames(forward)));
  RIDGE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Executor> executor,
      PrepareGraph(graph.graph, RandomInputs(graph.graph, request.seed), request.seed, machine));
  RIDGE_ASSIGN_OR_RETURN(std::vector<double> seconds, TimeRuns(*executor, request.runs));
  BenchRunResult result{.model = request.model,
                        .batch = request.batch,
                        .threads = machine.backend->threads(),
                        .nodes = static_cast<int64_t>(executor->program().steps[0].nodes.size()),
                        .first_s = seconds.front(),
                        .least_s = *std::min_element(seconds.begin(), seconds.end())};
  result.median_s = Median(std::move(seconds));
  return result;
}

std::string BenchRunToJson(const BenchRunResult& r) {
  using Json = nlohmann::ordered_json;
  const Json json = {
      {"fw", "ridge"},
      {"ver", kRidgeVersion},
      {"model", r.model},
      {"batch", r.batch},
      {"threads", r.threads},
      {"nodes", r.nodes},
      {"ms_min", r.least_s * 1e3},
      {"ms_med", r.median_s * 1e3},
      {"first_ms", r.first_s * 1e3},
      {"us_node", r.least_s * 1e6 / static_cast<double>(std::max<int64_t>(1, r.nodes))}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
