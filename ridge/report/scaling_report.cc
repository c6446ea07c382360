#include "ridge/report/scaling_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/layout_report.h"
#include "ridge/report/table.h"
#include "ridge/report/text.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<ScalingPoint>;

constexpr int kBarColumns = 20;

// The bar of a rate, and a mark where linear scaling would be.
std::string RateBar(double rate, double linear, double most, const Terminal& terminal) {
  std::string bar = BarText(rate / most, kBarColumns, terminal.unicode);
  const auto mark = static_cast<int>(linear / most * kBarColumns + 0.5) - 1;
  if (mark < DisplayWidth(bar)) return PadRight(bar, kBarColumns);
  return PadRight(PadRight(bar, mark) + (terminal.unicode ? "·" : "|"), kBarColumns);
}

std::string ChartText(const Points& points, const ScalingPoint& first, const Terminal& terminal) {
  Table table({{"devices", Align::kRight},
               {terminal.unicode ? "·: linear" : "|: linear"},
               {"samples/s", Align::kRight},
               {"range"},
               {"times", Align::kRight},
               {"range"}});
  const auto linear = [&](const ScalingPoint& of) {
    return first.samples_s() * static_cast<double>(of.devices) / static_cast<double>(first.devices);
  };
  double most = 0;
  for (const ScalingPoint& of : points) {
    if (of.fits()) most = std::max({most, of.samples_s(), linear(of)});
  }
  for (const ScalingPoint& of : points) {
    if (!of.fits()) continue;
    const auto rate = [&](double step_s) {
      return FormatCount(static_cast<double>(of.batch) / step_s);
    };
    const SpeedUp up = SpeedUpOf(of, first);
    table.AddRow({std::to_string(of.devices), RateBar(of.samples_s(), linear(of), most, terminal),
                  FormatCount(of.samples_s()),
                  fmt::format("{} to {}", rate(of.high_s()), rate(of.low_s())),
                  fmt::format("{:.2f}", up.times),
                  &of == &first ? "" : fmt::format("{:.2f} to {:.2f}", up.low, up.high)});
  }
  return table.ToText(terminal);
}

struct Term {
  const char* title;
  std::function<double(const ScalingPoint&)> seconds;
  bool always = false;
};

const std::vector<Term>& Terms() {
  static const std::vector<Term> terms = {
      {"kernels", [](const ScalingPoint& of) { return of.compute_s; }, true},
      {"again", [](const ScalingPoint& of) { return of.recompute_s; }},
      {"slowest", [](const ScalingPoint& of) { return of.stragglers_s; }},
      {"tensor", [](const ScalingPoint& of) { return of.tensor_s; }},
      {"stages", [](const ScalingPoint& of) { return of.stages_s; }},
      {"sums", [](const ScalingPoint& of) { return of.communication_s; }, true},
      {"input", [](const ScalingPoint& of) { return of.input_s; }},
      {"step", [](const ScalingPoint& of) { return of.step_s(); }, true}};
  return terms;
}

// A row a count with each term that any of them has.
std::string TermsText(const Points& points, const ScalingPoint& first, const Terminal& terminal) {
  std::vector<Column> columns = {{"devices", Align::kRight}};
  const bool searched = first.layout.has_value();
  const bool in_parts = std::any_of(points.begin(), points.end(), [](const ScalingPoint& of) {
    return of.layout && of.layout->micro_batches > 1;
  });
  if (searched) columns.push_back({"layout"});
  if (in_parts) columns.push_back({"micro", Align::kRight});
  std::vector<const Term*> shown;
  for (const Term& term : Terms()) {
    const bool any = std::any_of(points.begin(), points.end(), [&](const ScalingPoint& of) {
      return of.fits() && term.seconds(of) > 0;
    });
    if (!any && !term.always) continue;
    shown.push_back(&term);
    columns.push_back({term.title, Align::kRight});
  }
  columns.push_back({"of linear", Align::kRight});
  Table table(std::move(columns));
  for (const ScalingPoint& of : points) {
    if (!of.fits()) continue;
    std::vector<std::string> row = {std::to_string(of.devices)};
    if (searched) row.push_back(of.layout ? LayoutShortText(*of.layout) : "");
    if (in_parts)
      row.push_back(fmt::format("{} x {}", of.layout->micro_batches, of.layout->samples));
    for (const Term* term : shown) {
      const double seconds = term->seconds(of);
      row.push_back(seconds > 0 ? FormatSeconds(seconds) : "-");
    }
    row.push_back(FormatPercent(LinearShare(of, first)));
    table.AddRow(std::move(row));
  }
  return table.ToText(terminal);
}

std::string PointsText(const std::string& title, const Points& points, const Terminal& terminal) {
  if (points.empty()) return "";
  std::string text = Styled(title, Style::kBold, terminal) + "\n" + ScalingVerdict(points);
  const ScalingPoint* first = FirstFitting(points);
  if (first == nullptr) return text + "\n";
  return text + "\n" + ChartText(points, *first, terminal) + "\n" +
         TermsText(points, *first, terminal) + "\n";
}

std::string StrongTitle(const ScalingTable& table) {
  return fmt::format("Strong: {} an update, on more devices",
                     FormatCountOf(table.strong.front().batch, "sample"));
}

std::string WeakTitle(const ScalingTable& table) {
  const ScalingPoint& one = table.weak.front();
  return fmt::format("Weak: {} an update for each device",
                     FormatCountOf(one.batch / one.devices, "sample"));
}

std::string TableText(const ScalingTable& table, const Terminal& terminal) {
  std::string text = table.title + "\n\n";
  if (!table.strong.empty()) text += PointsText(StrongTitle(table), table.strong, terminal);
  if (!table.weak.empty()) text += PointsText(WeakTitle(table), table.weak, terminal);
  return text;
}

const ScalingPoint* PointAt(const Points& points, int64_t devices) {
  const auto found = std::find_if(points.begin(), points.end(), [&](const ScalingPoint& point) {
    return point.devices == devices && point.fits();
  });
  return found == points.end() ? nullptr : &*found;
}

const Points& PointsOf(const ScalingTable& table) {
  return table.strong.empty() ? table.weak : table.strong;
}

// A row a count, two columns a place.
std::string ComparisonText(const std::vector<ScalingTable>& tables, const Terminal& terminal) {
  std::vector<Column> columns = {{"devices", Align::kRight}};
  for (const ScalingTable& table : tables) {
    columns.push_back({table.place, Align::kRight});
    columns.push_back({"of linear", Align::kRight});
  }
  Table rows(std::move(columns));
  std::string last_text;
  for (const ScalingPoint& of : PointsOf(tables.front())) {
    std::vector<std::string> row = {std::to_string(of.devices)};
    for (const ScalingTable& table : tables) {
      const ScalingPoint* point = PointAt(PointsOf(table), of.devices);
      row.push_back(point == nullptr ? "-" : FormatCount(point->samples_s()));
      row.push_back(point == nullptr
                        ? ""
                        : FormatPercent(LinearShare(*point, *FirstFitting(PointsOf(table)))));
    }
    rows.AddRow(std::move(row));
  }
  return Styled("Samples a second beside each other", Style::kBold, terminal) + "\n" +
         rows.ToText(terminal);
}

// "8 of a100-sxm4-80g: 1.41 times the samples a second of a100-pcie-80g".
std::string ComparisonVerdict(const std::vector<ScalingTable>& tables) {
  std::string text;
  const ScalingTable& base = tables.back();
  for (const ScalingTable& table : tables) {
    if (&table == &base) continue;
    for (auto point = PointsOf(table).rbegin(); point != PointsOf(table).rend(); ++point) {
      const ScalingPoint* other = PointAt(PointsOf(base), point->devices);
      if (!point->fits() || other == nullptr) continue;
      text +=
          fmt::format("{} of {}: {:.2f} times the samples a second of {} of {}.\n", point->devices,
                      table.place, SpeedUpOf(*point, *other).times, other->devices, base.place);
      break;
    }
  }
  return text;
}

Json SpeedUpJson(const ScalingPoint& of, const ScalingPoint& first) {
  const SpeedUp up = SpeedUpOf(of, first);
  return {{"times", up.times}, {"low", up.low}, {"high", up.high}};
}

void AddLayout(const ScalingPoint& of, Json& json) {
  if (!of.layout) return;
  json["mesh"] = LayoutMeshText(*of.layout);
  json["shard"] = LayoutShardText(*of.layout);
  json["recompute"] = of.layout->recompute;
  json["micro_batches"] = of.layout->micro_batches;
}

Json PointJson(const ScalingPoint& of, const ScalingPoint* first) {
  Json json = {{"devices", of.devices}, {"batch", of.batch}, {"fits", of.fits()}};
  if (of.limit_bytes > 0) {
    json["peak_bytes"] = of.peak_bytes;
    json["limit_bytes"] = of.limit_bytes;
  }
  if (!of.fits()) return json;
  AddLayout(of, json);
  json.update({{"compute_s", of.compute_s},
               {"recompute_s", of.recompute_s},
               {"stragglers_s", of.stragglers_s},
               {"tensor_s", of.tensor_s},
               {"stages_s", of.stages_s},
               {"communication_s", of.communication_s},
               {"input_s", of.input_s},
               {"step_s", of.step_s()},
               {"step_low_s", of.low_s()},
               {"step_high_s", of.high_s()},
               {"samples_s", of.samples_s()},
               {"speed_up", SpeedUpJson(of, *first)},
               {"linear_share", LinearShare(of, *first)}});
  return json;
}

Json PointsJson(const Points& points) {
  Json json = Json::array();
  const ScalingPoint* first = FirstFitting(points);
  for (const ScalingPoint& of : points) json.push_back(PointJson(of, first));
  return json;
}

Json TableJson(const ScalingTable& table) {
  return {{"title", table.title},
          {"strong", PointsJson(table.strong)},
          {"weak", PointsJson(table.weak)}};
}

}  // namespace

std::string ScalingReport(const std::vector<ScalingTable>& tables, const Terminal& terminal) {
  std::string text;
  for (const ScalingTable& table : tables) text += TableText(table, terminal);
  if (tables.size() > 1)
    text += ComparisonText(tables, terminal) + "\n" + ComparisonVerdict(tables);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string ScalingJson(const std::vector<ScalingTable>& tables) {
  Json json = Json::array();
  for (const ScalingTable& table : tables) json.push_back(TableJson(table));
  return (tables.size() == 1 ? json.front() : json)
      .dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
