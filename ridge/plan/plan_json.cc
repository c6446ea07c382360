#include "ridge/plan/plan_json.h"

#include <nlohmann/json.hpp>

#include "ridge/plan/hardware/conv_workspaces.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/plan/workspaces.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order in which people look for them

struct NodeSeconds {
  double planned = 0, modelled = 0;
};

Json NodeJson(const PlannedNode& node, const NodeSeconds& seconds, const NodePlace& place,
              const UpdatePart& part) {
  Json json{{"name", node.name},
            {"op", node.op},
            {"flops", node.cost.flops},
            {"bytes_read", node.cost.bytes_read},
            {"bytes_written", node.cost.bytes_written},
            {"s", seconds.planned},
            {"bound", BoundName(node.bound)},
            {"kernel", node.choice.kernel},
            {"modelled_s", seconds.modelled},
            {"measured", node.measured_s.has_value()},
            {"measured_s", node.measured_s ? Json(*node.measured_s) : Json(nullptr)},
            {"step", part.step->name},
            {"runs", part.runs * place.trips}};
  if (place.parallel >= 0) {
    json["section"] = place.parallel;
    json["lane"] = place.stream;
  }
  return json;
}

Json NodesJson(const PlanSummary& plan) {
  Json nodes = Json::array();
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<NodePlace> places = NodePlaces(*part.step);
    const std::vector<double> planned = PlannedNodeSeconds(*part.step);
    const std::vector<double> modelled = ModelledNodeSeconds(*part.step);
    for (size_t n = 0; n < planned.size(); ++n)
      nodes.push_back(NodeJson(part.step->nodes[n], {planned[n], modelled[n]}, places[n], part));
  }
  return nodes;
}

Json BreakdownJson(const MemoryEstimate& memory) {
  Json breakdown = Json::object();
  for (const auto& [purpose, bytes] : memory.breakdown) breakdown[purpose] = bytes;
  return breakdown;
}

Json PeakJson(const MemoryEstimate& memory) {
  Json largest = Json::array();
  for (const auto& [name, bytes] : memory.largest) {
    largest.push_back({{"name", name}, {"bytes", bytes}});
  }
  return {{"step", memory.peak_step}, {"node", memory.peak_node}, {"largest", largest}};
}

Json StepsJson(const Program& program) {
  Json steps = Json::array();
  for (const StepPlan& step : program.steps) {
    steps.push_back({{"name", step.name},
                     {"nodes", step.nodes.size()},
                     {"s", PlannedSeconds(step)},
                     {"modelled_s", ModelledSeconds(step)},
                     {"scratch_bytes", step.scratch_bytes},
                     {"bound_bytes", step.bound_bytes}});
  }
  return steps;
}

Json CandidatesJson(const std::vector<PlanCandidate>& candidates) {
  Json all = Json::array();
  for (const PlanCandidate& c : candidates) {
    all.push_back({{"slices", c.slices},
                   {"recompute", c.recompute},
                   {"loss_chunks", c.loss_chunks},
                   {"bytes", c.bytes},
                   {"s", c.seconds},
                   {"fits", c.fits},
                   {"chosen", c.chosen}});
  }
  return all;
}

Json ExpectedJson(const ExpectedStep& expected) {
  return {{"step_s", expected.step_s},
          {"epoch_s", expected.epoch_s ? Json(*expected.epoch_s) : Json(nullptr)},
          {"scale", expected.scale},
          {"scale_low", expected.low},
          {"scale_high", expected.high},
          {"runs", expected.runs},
          {"model", expected.model.empty() ? Json(nullptr) : Json(expected.model)}};
}

int64_t SlicesOf(const PlanSummary& plan) {
  const std::vector<UpdatePart> parts = UpdateParts(*plan.program, plan.accumulate);
  return parts.empty() ? 1 : parts.front().step->slices;
}

Json PhasesJson(const Program& program) {
  Json all = Json::array();
  for (const PhasePeak& peak : PhasePeaks(program)) {
    Json largest = Json::array();
    for (const auto& [name, bytes] : peak.largest)
      largest.push_back({{"name", name}, {"bytes", bytes}});
    all.push_back({{"phase", peak.phase},
                   {"step", peak.step},
                   {"node", peak.node},
                   {"bytes", peak.bytes},
                   {"largest", std::move(largest)}});
  }
  return all;
}

Json LengthsJson(const std::vector<PlanLength>& lengths) {
  Json json = Json::array();
  for (const PlanLength& of : lengths) {
    json.push_back({{"length", of.length},
                    {"batch", of.batch},
                    {"batches", of.batches},
                    {"step", of.step},
                    {"step_s", of.step_s},
                    {"modelled_step_s", of.modelled_step_s}});
  }
  return json;
}

Json CollectivesJson(const std::vector<Collective>& collectives) {
  Json json = Json::array();
  for (const Collective& of : collectives) {
    json.push_back({{"step", of.step},
                    {"op", of.op},
                    {"count", of.count},
                    {"bytes", of.bytes},
                    {"sent_bytes", of.sent_bytes},
                    {"scratch_bytes", of.scratch_bytes}});
  }
  return json;
}

Json WiresJson(const std::vector<WirePrice>& wires) {
  Json json = Json::array();
  for (const WirePrice& of : wires)
    json.push_back({{"wire", of.wire}, {"busy_s", of.busy_s}, {"sent_bytes", of.sent_bytes}});
  return json;
}

Json WorkspacesJson(const WorkspaceSources& sources, const Program& program) {
  return {{"library", ConvLibrary()},
          {"answers_of", sources.libraries},
          {"recorded", sources.recorded.size()},
          {"asked", sources.asked.size()},
          {"by_formula", sources.by_formula},
          {"bounded", sources.bounded},
          {"other_engines", sources.other_engines},
          {"largest_bytes", sources.largest_bytes},
          {"largest_first_bytes", sources.largest_first_bytes},
          {"deterministic_peak_bytes", DeterministicBytes(program)}};
}

Json SummaryJson(const PlanSummary& plan) {
  Json json;
  json["device"] = plan.program->device;
  json["model"] = plan.program->model;
  json["batch"] = plan.batch;
  json["accumulate"] = plan.accumulate;
  json["slices"] = SlicesOf(plan);
  if (const std::optional<SliceShare> share = ShareOf(*plan.program))
    json["share"] = {{"slices", share->slices}, {"rank", share->rank}, {"ranks", share->ranks}};
  if (const std::optional<MeshPlace>& place = plan.program->place)
    json["mesh"] = {{"axes", MeshText(place->mesh)}, {"rank", place->device}};
  json["peak_bytes"] = plan.memory.peak_bytes;
  if (plan.memory.range) {
    json["peak_low_bytes"] = plan.memory.range->low_bytes;
    json["peak_high_bytes"] = plan.memory.range->high_bytes;
    json["memory_scale"] = plan.memory.range->scale;
    json["memory_evidence"] = plan.memory.range->evidence;
  }
  json["arena_bytes"] = plan.memory.arena_bytes;
  json["bound_bytes"] = plan.memory.bound_bytes;
  json["breakdown"] = BreakdownJson(plan.memory);
  if (const WorkspaceSources sources = WorkspaceSourcesOf(*plan.program); !sources.empty())
    json["workspaces"] = WorkspacesJson(sources, *plan.program);
  if (plan.offload) {
    json["offload"] = {{"placed", plan.offload->placed},
                       {"host_bytes", plan.offload->host_bytes},
                       {"window_bytes", plan.offload->window_bytes},
                       {"to_device_bytes", plan.offload->to_device_bytes},
                       {"to_host_bytes", plan.offload->to_host_bytes},
                       {"transfer_s", plan.offload->transfer_s}};
  }
  json["step_s"] = plan.step_s;
  json["modelled_step_s"] = plan.modelled_step_s;
  if (plan.range) {
    json["step_low_s"] = plan.range->low_s;
    json["step_high_s"] = plan.range->high_s;
    json["software"] = plan.range->software;
    json["scale"] = plan.range->scale;
    json["evidence"] = plan.range->evidence;
    json["peak_flops_per_s"] = plan.range->peak_flops_per_s;
  }
  json["epoch_s"] = plan.epoch_s ? Json(*plan.epoch_s) : Json(nullptr);
  if (plan.expected) json["expected"] = ExpectedJson(*plan.expected);
  json["fits"] = plan.knows_limit() ? Json(plan.fits) : Json(nullptr);
  json["limit_bytes"] = plan.knows_limit() ? Json(plan.limit_bytes) : Json(nullptr);
  if (plan.rates) {
    json["rates"] = {{"recorded", plan.rates->rated},
                     {"missing", plan.rates->missing},
                     {"missing_share", plan.rates->missing_share}};
  }
  if (plan.read_workers > 0) {
    json["read_workers"] = plan.read_workers;
    json["pipeline_cap_bytes"] = plan.pipeline_cap_bytes;
  }
  json["peak"] = PeakJson(plan.memory);
  json["phases"] = PhasesJson(*plan.program);
  json["candidates"] = CandidatesJson(plan.candidates);
  if (!plan.lengths.empty()) json["lengths"] = LengthsJson(plan.lengths);
  if (const auto collectives = CollectivesOf(*plan.program); !collectives.empty())
    json["collectives"] = CollectivesJson(collectives);
  if (plan.communication) {
    json["communication"] = {{"busy_s", plan.communication->busy_s},
                             {"exposed_s", plan.communication->exposed_s},
                             {"exposed_share", plan.exposed_share()},
                             {"source", plan.communication->source},
                             {"wires", WiresJson(plan.communication->wires)}};
  }
  json["steps"] = StepsJson(*plan.program);
  json["nodes"] = NodesJson(plan);
  return json;
}

// Names come from files: bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string Text(const Json& json) {
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

double PlanSummary::samples() const {
  double samples = 0, batches = 0;
  for (const PlanLength& of : lengths) {
    samples += static_cast<double>(of.batch * of.batches);
    batches += static_cast<double>(of.batches);
  }
  return batches > 0 ? samples / batches : static_cast<double>(batch * accumulate);
}

std::vector<UpdatePart> UpdateParts(const Program& program, int64_t accumulate) {
  if (const StepPlan* train = program.Find("train"); train != nullptr) return {{train, 1}};
  std::vector<UpdatePart> parts;
  if (const StepPlan* micro = program.Find("micro"); micro != nullptr) {
    parts.push_back({micro, accumulate});
  }
  if (const StepPlan* update = program.Find("update"); update != nullptr) {
    parts.push_back({update, 1});
  }
  if (parts.empty() && !program.steps.empty()) parts.push_back({&program.steps.front(), 1});
  return parts;
}

Cost UpdateCost(const Program& program, int64_t accumulate) {
  Cost sum;
  for (const UpdatePart& part : UpdateParts(program, accumulate)) {
    for (size_t n = 0; n < part.step->nodes.size(); ++n) {
      const int64_t runs = part.runs * RunsOf(*part.step, n);
      const Cost& cost = part.step->nodes[n].cost;
      sum.flops += runs * cost.flops;
      sum.bytes_read += runs * cost.bytes_read;
      sum.bytes_written += runs * cost.bytes_written;
    }
  }
  return sum;
}

double UpdateSeconds(const Program& program, int64_t accumulate,
                     double (*seconds_of)(const StepPlan&)) {
  double seconds = 0;
  for (const UpdatePart& part : UpdateParts(program, accumulate))
    seconds += seconds_of(*part.step) * static_cast<double>(part.runs);
  return seconds;
}

PlanSummary SummarizePlan(const Program& program, MemoryEstimate memory, int64_t batch,
                          int64_t accumulate, int64_t limit_bytes) {
  PlanSummary plan;
  plan.program = &program;
  plan.memory = std::move(memory);
  plan.batch = batch;
  plan.accumulate = accumulate;
  plan.limit_bytes = limit_bytes;
  plan.fits = plan.memory.needed_bytes() <= limit_bytes;
  plan.step_s = UpdateSeconds(program, accumulate);
  plan.modelled_step_s = UpdateSeconds(program, accumulate, ModelledSeconds);
  return plan;
}

std::string PlanToJson(const PlanSummary& plan) { return Text(SummaryJson(plan)); }

std::string PlansToJson(const std::vector<PlanSummary>& plans) {
  Json json = Json::array();
  for (const PlanSummary& plan : plans) json.push_back(SummaryJson(plan));
  return Text(json);
}

}  // namespace ridge
