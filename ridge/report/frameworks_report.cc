#include "ridge/report/frameworks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/report/grid.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMarks[] = "~ estimated, ? not known, others known";

std::string MarkedText(const FrameworkCell& cell) {
  switch (cell.evidence) {
    case Evidence::kKnown:
      return cell.text;
    case Evidence::kEstimated:
      return "~" + cell.text;
    case Evidence::kNotKnown:
      return "?";
  }
  return "?";
}

std::string TitleOf(const FrameworkColumn& column, const FrameworksTable& table) {
  if (column.cell == &FrameworkRow::seconds && !table.is_step) return "training";
  return column.title;
}

std::string DeviceTitle(const DeviceFrameworks& device) {
  return fmt::format("on {}, {}", device.device, device.precision);
}

// Those of a table in 100 columns.
std::vector<FrameworkColumn> ShownColumns() {
  std::vector<FrameworkColumn> columns = FrameworkColumns();
  std::erase_if(columns, [](const FrameworkColumn& column) {
    return column.cell == &FrameworkRow::packages;
  });
  return columns;
}

std::vector<Column> TableColumns(const FrameworksTable& table) {
  std::vector<Column> columns = {{"program"}};
  for (const FrameworkColumn& column : ShownColumns()) {
    const bool is_number =
        column.cell != &FrameworkRow::least && column.cell != &FrameworkRow::newest &&
        column.cell != &FrameworkRow::driver && column.cell != &FrameworkRow::python;
    columns.push_back({TitleOf(column, table), is_number ? Align::kRight : Align::kLeft});
  }
  return columns;
}

std::string RowsText(const DeviceFrameworks& device, const FrameworksTable& table,
                     const Terminal& terminal) {
  Table rows(TableColumns(table));
  for (const FrameworkRow& row : device.rows) {
    std::vector<std::string> cells = {row.program};
    for (const FrameworkColumn& column : ShownColumns())
      cells.push_back(MarkedText(row.*column.cell));
    rows.AddRow(std::move(cells));
  }
  return rows.ToText(terminal);
}

// "  newest    estimated  2.21.0, CUDA 12.5: tensorflow/docs@7c36502 ..."
std::string SourcesText(const DeviceFrameworks& device) {
  std::string text;
  for (const FrameworkRow& row : device.rows) {
    text += fmt::format("\n  {} on {}\n", row.program, device.device);
    for (const FrameworkColumn& column : FrameworkColumns()) {
      const FrameworkCell& cell = row.*column.cell;
      if (cell.source.empty()) continue;
      const std::string value = cell.text.empty() ? "" : cell.text + ": ";
      text += fmt::format("    {:<10} {:<9}  {}{}\n", column.key, EvidenceName(cell.evidence),
                          value, cell.source);
    }
  }
  return text;
}

Json CellJson(const FrameworkCell& cell) {
  const Json text = cell.text.empty() ? Json(nullptr) : Json(cell.text);
  return {{"text", text},
          {"value", cell.value ? Json(*cell.value) : Json(nullptr)},
          {"evidence", EvidenceName(cell.evidence)},
          {"source", cell.source}};
}

Json DeviceJson(const DeviceFrameworks& device) {
  Json programs = Json::array();
  for (const FrameworkRow& row : device.rows) {
    Json json = {{"program", row.program}};
    for (const FrameworkColumn& column : FrameworkColumns())
      json[column.key] = CellJson(row.*column.cell);
    programs.push_back(std::move(json));
  }
  return {{"device", device.device},
          {"precision", device.precision},
          {"programs", std::move(programs)}};
}

Grid GridOf(const DeviceFrameworks& device, const FrameworksTable& table) {
  Grid grid = {DeviceTitle(device), {"program"}, {}};
  for (const FrameworkColumn& column : FrameworkColumns())
    grid.columns.push_back(TitleOf(column, table));
  for (const FrameworkRow& row : device.rows) {
    std::vector<GridCell> cells = {{row.program}};
    for (const FrameworkColumn& column : FrameworkColumns())
      cells.push_back({MarkedText(row.*column.cell), (row.*column.cell).value});
    grid.rows.push_back(std::move(cells));
  }
  return grid;
}

}  // namespace

const char* EvidenceName(Evidence evidence) {
  switch (evidence) {
    case Evidence::kKnown:
      return "known";
    case Evidence::kEstimated:
      return "estimated";
    case Evidence::kNotKnown:
      return "not known";
  }
  return "not known";
}

const std::vector<FrameworkColumn>& FrameworkColumns() {
  static const std::vector<FrameworkColumn> all = {
      {"least", "from", &FrameworkRow::least},
      {"newest", "newest", &FrameworkRow::newest},
      {"driver", "driver", &FrameworkRow::driver},
      {"python", "Python", &FrameworkRow::python},
      {"memory", "memory", &FrameworkRow::memory},
      {"seconds", "a step", &FrameworkRow::seconds},
      {"host_share", "host", &FrameworkRow::host_share},
      {"download", "download", &FrameworkRow::download},
      {"packages", "packages", &FrameworkRow::packages}};
  return all;
}

std::string FrameworksReport(const FrameworksTable& table, const Terminal& terminal) {
  std::string text =
      Styled("Frameworks", Style::kBold, terminal) + "  " + table.title + " (nothing was run)\n";
  for (const DeviceFrameworks& device : table.devices)
    text += fmt::format("\n  {}\n{}", DeviceTitle(device), RowsText(device, table, terminal));
  text += fmt::format("\n  {}{}\n", kMarks, table.all ? "" : "; sources: --all");
  if (!table.all) return text;
  for (const DeviceFrameworks& device : table.devices) text += SourcesText(device);
  return text;
}

std::string FrameworksJson(const FrameworksTable& table) {
  Json json = {{"title", table.title}, {"seconds_of", table.is_step ? "step" : "training"}};
  json["devices"] = Json::array();
  for (const DeviceFrameworks& device : table.devices)
    json["devices"].push_back(DeviceJson(device));
  return json.dump(1);
}

std::string FrameworksMarkdown(const FrameworksTable& table) {
  std::string text = fmt::format("## {}\n\nNothing was run. {}.\n", table.title, kMarks);
  for (const DeviceFrameworks& device : table.devices)
    text += "\n" + MarkdownGrid(GridOf(device, table));
  return text;
}

}  // namespace ridge
