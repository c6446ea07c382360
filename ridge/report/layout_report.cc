#include "ridge/report/layout_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/partition/layouts.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

std::string SecondsText(double seconds) { return seconds > 0 ? FormatSeconds(seconds) : ""; }

Json BytesJson(const LayoutBytes& bytes) {
  return {{"parameters", bytes.parameters},
          {"gradients", bytes.gradients},
          {"optimizer", bytes.optimizer},
          {"gathered", bytes.gathered},
          {"activations", bytes.activations},
          {"transient", bytes.transient},
          {"other", bytes.other},
          {"runtime", bytes.runtime}};
}

Json SecondsJson(const LayoutSeconds& seconds) {
  return {{"kernels", seconds.kernels}, {"recompute", seconds.recompute},
          {"tensor", seconds.tensor},   {"pipeline", seconds.pipeline},
          {"send", seconds.send},       {"data", seconds.data},
          {"update", seconds.update},   {"stragglers", seconds.stragglers}};
}

Json JsonOf(const LayoutTable& table, const LayoutCost& cost) {
  const LayoutChoice& choice = cost.choice;
  return {{"mesh", LayoutMeshText(choice)},
          {"shard", LayoutShardText(choice)},
          {"recompute", choice.recompute},
          {"batch", choice.data * choice.samples},
          {"accumulate", choice.micro_batches},
          {"devices", choice.devices()},
          {"peak_bytes", cost.bytes.all()},
          {"limit_bytes", table.limit_bytes},
          {"bytes", BytesJson(cost.bytes)},
          {"step_s", cost.seconds.all()},
          {"seconds", SecondsJson(cost.seconds)},
          {"turn_s", cost.turn_s},
          {"kernels", cost.kernels},
          {"samples_s", cost.samples_s()},
          {"flops", cost.flops},
          {"mfu", LayoutMfu(cost, table.peak_flops_per_s)}};
}

std::vector<std::string> RowOfLayout(const LayoutTable& table, const LayoutCost& cost) {
  const LayoutChoice& choice = cost.choice;
  const LayoutSeconds& s = cost.seconds;
  const double mfu = LayoutMfu(cost, table.peak_flops_per_s);
  return {LayoutMeshText(choice),
          LayoutShardText(choice),
          fmt::format("{} x {}", choice.micro_batches, choice.samples),
          choice.recompute ? "yes" : "",
          FormatBytes(cost.bytes.all()),
          FormatSeconds(s.kernels + s.stragglers),
          SecondsText(s.recompute),
          SecondsText(s.tensor),
          SecondsText(s.pipeline + s.send),
          SecondsText(s.data),
          SecondsText(s.update),
          FormatSeconds(s.all()),
          mfu > 0 ? fmt::format("{:.1f} %", 100 * mfu) : ""};
}

}  // namespace

std::string LayoutMeshText(const LayoutChoice& choice) {
  return fmt::format("p={},d={},t={}", choice.pipeline, choice.data, choice.tensor);
}

std::string LayoutShardText(const LayoutChoice& choice) {
  return ShardingText({choice.zero, choice.sequence});
}

std::string LayoutShortText(const LayoutChoice& choice) {
  std::string text;
  const auto add = [&](const char* axis, int64_t size) {
    if (size > 1) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis, size);
  };
  add("p", choice.pipeline);
  add("d", choice.data);
  add("t", choice.tensor);
  if (const std::string shard = LayoutShardText(choice); shard != "none") text += " " + shard;
  if (choice.recompute) text += " again";
  return text;
}

double LayoutMfu(const LayoutCost& cost, double peak_flops_per_s) {
  return peak_flops_per_s > 0 ? cost.flops / cost.seconds.all() / peak_flops_per_s : 0;
}

std::string LayoutReport(const LayoutTable& table, const Terminal& terminal) {
  constexpr Align kRight = Align::kRight;
  Table rows({{"mesh"},
              {"shard"},
              {"micro", kRight},
              {"again", kRight},
              {"a rank", kRight},
              {"kernels", kRight},
              {"again", kRight},
              {"tensor", kRight},
              {"stages", kRight},
              {"data", kRight},
              {"update", kRight},
              {"step", kRight},
              {"of peak", kRight}});
  for (const LayoutCost& cost : table.layouts) rows.AddRow(RowOfLayout(table, cost));
  return table.title + "\n\n" + rows.ToText(terminal);
}

std::string LayoutJson(const LayoutTable& table) {
  return JsonOf(table, table.layouts.front()).dump(2);
}

std::string LayoutsJson(const LayoutTable& table) {
  Json list = Json::array();
  for (const LayoutCost& cost : table.layouts) list.push_back(JsonOf(table, cost));
  return list.dump(2);
}

}  // namespace ridge
