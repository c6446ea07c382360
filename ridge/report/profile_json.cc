#include <nlohmann/json.hpp>

#include "ridge/report/profile.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json RowsJson(const StepProfile& profile) {
  Json rows = Json::array();
  for (const ProfileRow& row : profile.rows) {
    rows.push_back({{"part", ProfilePartName(row.part)},
                    {"name", row.name},
                    {"nodes", row.nodes},
                    {"s", row.seconds},
                    {"limit_s", row.limit_s}});
  }
  return rows;
}

Json Groups(const StepProfile& profile) {
  Json groups = Json::array();
  for (const ProfileGroup& group : profile.groups) {
    groups.push_back({{"name", group.name},
                      {"op", group.op},
                      {"kernel", group.kernel},
                      {"key", group.key},
                      {"part", ProfilePartName(group.part)},
                      {"row", group.row},
                      {"nodes", group.nodes},
                      {"s", group.seconds},
                      {"limit_s", group.limit_s},
                      {"flops", group.flops},
                      {"bytes", group.bytes},
                      {"level", group.level},
                      {"on_host", group.on_host},
                      {"cause", group.cause},
                      {"why", group.why}});
  }
  return groups;
}

Json Nodes(const StepProfile& profile) {
  const StepPlan& step = *profile.measured.step;
  const std::vector<LiveBytes> live = LiveBytesByNode(step, profile.measured.persistent_bytes);
  Json nodes = Json::array();
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    nodes.push_back({{"name", step.nodes[n].name},
                     {"op", step.nodes[n].op},
                     {"group", profile.nodes[n].group},
                     {"on_host", profile.nodes[n].on_host},
                     {"s", profile.nodes[n].seconds},
                     {"limit_s", profile.nodes[n].limit_s},
                     {"planned_s", profile.nodes[n].planned_s},
                     {"runs", RunsOf(step, n)},
                     {"flops", step.nodes[n].cost.flops},
                     {"bytes_read", step.nodes[n].cost.bytes_read},
                     {"bytes_written", step.nodes[n].cost.bytes_written},
                     {"live_bytes", live[n].total()}});
  }
  return nodes;
}

Json Limits(const DeviceProfile& limits) {
  Json memory = Json::array();
  for (const MemoryLevel& level : limits.memory) {
    memory.push_back({{"level", level.level},
                      {"capacity_bytes", level.capacity_bytes},
                      {"bytes_per_s", level.bytes_per_s}});
  }
  return {
      {"device", limits.name}, {"peak_flops_per_s", limits.peak_flops_per_s}, {"memory", memory}};
}

Json Advice(const StepProfile& profile) {
  Json list = Json::array();
  for (const ProfileAdvice& advice : profile.advice) {
    list.push_back({{"gain_s", advice.gain_s},
                    {"what", advice.what},
                    {"how", advice.how},
                    {"nodes", advice.nodes}});
  }
  return list;
}

}  // namespace

std::string ProfileToJson(const StepProfile& profile) {
  const StepMeasurement& m = profile.measured;
  const Json json = {{"fw", "ridge"},
                     {"ver", m.version},
                     {"model", m.model},
                     {"batch", m.batch},
                     {"opt", m.optimizer},
                     {"prec", DTypeName(m.operands)},
                     {"threads", m.threads},
                     {"params", m.parameters},
                     {"rounds", m.steps},
                     {"step_s", m.step_s},
                     {"plain_step_s", m.plain_step_s},
                     {"input_wait_s", m.input_wait_s},
                     {"model_flops", m.model_flops},
                     {"flops_floor_s", profile.flops_floor_s},
                     {"roofline_step_s", profile.roofline_step_s},
                     {"limit_s", profile.limit_s},
                     {"limits", Limits(m.limits)},
                     {"rows", RowsJson(profile)},
                     {"groups", Groups(profile)},
                     {"nodes", Nodes(profile)},
                     {"advice", Advice(profile)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
