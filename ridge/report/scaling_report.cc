#include "ridge/report/scaling_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<ScalingPoint>;

std::string Part(double seconds) { return seconds > 0 ? FormatSeconds(seconds) : "-"; }

std::string PointsText(const Points& points, const Terminal& terminal) {
  Table table({{"devices", Align::kRight},
               {"batch", Align::kRight},
               {"compute", Align::kRight},
               {"stragglers", Align::kRight},
               {"communication", Align::kRight},
               {"input", Align::kRight},
               {"step", Align::kRight},
               {"range"},
               {"samples/s", Align::kRight},
               {"of linear", Align::kRight}});
  for (const ScalingPoint& of : points) {
    table.AddRow({std::to_string(of.devices), std::to_string(of.batch), Part(of.compute_s),
                  Part(of.stragglers_s), Part(of.communication_s), Part(of.input_s),
                  FormatSeconds(of.step_s()),
                  fmt::format("{} to {}", FormatSeconds(of.low_s), FormatSeconds(of.high_s)),
                  FormatCount(of.samples_s()), FormatPercent(LinearShare(of, points.front()))});
  }
  return table.ToText(terminal);
}

// "Two devices: 1.62 times the samples a second (1.31 to 1.90)."
std::string VerdictText(const Points& strong) {
  if (strong.size() < 2) return "";
  const ScalingPoint &one = strong[0], &more = strong[1];
  return fmt::format("\n{} devices: {:.2f} times the samples a second of one ({:.2f} to {:.2f}).\n",
                     more.devices, one.step_s() / more.step_s(), one.low_s / more.high_s,
                     one.high_s / more.low_s);
}

Json PointsJson(const Points& points) {
  Json json = Json::array();
  for (const ScalingPoint& of : points) {
    json.push_back({{"devices", of.devices},
                    {"batch", of.batch},
                    {"compute_s", of.compute_s},
                    {"stragglers_s", of.stragglers_s},
                    {"communication_s", of.communication_s},
                    {"input_s", of.input_s},
                    {"step_s", of.step_s()},
                    {"step_low_s", of.low_s},
                    {"step_high_s", of.high_s},
                    {"samples_s", of.samples_s()},
                    {"linear_share", LinearShare(of, points.front())}});
  }
  return json;
}

}  // namespace

std::string ScalingReport(const ScalingTable& table, const Terminal& terminal) {
  std::string text = fmt::format("{}\n\nThe same batch on more devices\n", table.title);
  text += PointsText(table.strong, terminal) + VerdictText(table.strong);
  return text + "\nThe same batch on each device\n" + PointsText(table.weak, terminal);
}

std::string ScalingJson(const ScalingTable& table) {
  const Json json = {{"title", table.title},
                     {"strong", PointsJson(table.strong)},
                     {"weak", PointsJson(table.weak)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
