#include "ridge/report/table.h"

#include <algorithm>
#include <numeric>

#include "ridge/core/status.h"
#include "ridge/report/text.h"

namespace ridge {
namespace {

constexpr int kGap = 2;                 // blanks between columns
constexpr int kNarrowestShortened = 8;  // columns that a name keeps at least

std::string WithoutTrailingBlanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

int LineWidth(const std::vector<int>& widths) {
  const int gaps = kGap * (static_cast<int>(widths.size()) - 1);
  return std::accumulate(widths.begin(), widths.end(), std::max(gaps, 0));
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells, Style style) {
  RIDGE_CHECK(cells.size() <= columns_.size(), "a row has no more cells than the table columns");
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back({std::move(cells), style});
}

void Table::AddRule() { rows_.push_back({}); }

std::string Table::ToText(const Terminal& terminal, int indent) const {
  const std::vector<int> widths = Widths(terminal, indent);
  Row header{{}, Style::kBold};
  bool has_titles = false;
  for (const Column& column : columns_) {
    header.cells.push_back(Printable(column.title));
    has_titles = has_titles || !column.title.empty();
  }
  std::string text;
  if (has_titles) text += RowText(header, widths, terminal, indent);
  for (const Row& row : rows_) text += RowText(row, widths, terminal, indent);
  return text;
}

std::vector<int> Table::Widths(const Terminal& terminal, int indent) const {
  std::vector<int> widths;
  for (const Column& column : columns_) widths.push_back(DisplayWidth(column.title));
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); ++i)
      widths[i] = std::max(widths[i], DisplayWidth(row.cells[i]));
  }
  if (!terminal.is_terminal) return widths;
  int widest = -1;  // of the left-aligned columns: numbers are never cut
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool wider = widest < 0 || widths[i] > widths[static_cast<size_t>(widest)];
    if (columns_[i].align == Align::kLeft && wider) widest = static_cast<int>(i);
  }
  const int excess = indent + LineWidth(widths) - terminal.width;
  if (widest < 0 || excess <= 0) return widths;
  int& width = widths[static_cast<size_t>(widest)];
  width = std::max(width - excess, std::min(width, kNarrowestShortened));
  return widths;
}

std::string Table::RowText(const Row& row, const std::vector<int>& widths, const Terminal& terminal,
                           int indent) const {
  std::string line;
  if (row.cells.empty()) {
    for (int i = 0; i < LineWidth(widths); ++i) line += terminal.unicode ? "\u2500" : "-";
  }
  for (size_t i = 0; i < row.cells.size(); ++i) {
    if (i > 0) line.append(kGap, ' ');
    const std::string cell = Shortened(row.cells[i], widths[i], terminal.unicode);
    const bool right = columns_[i].align == Align::kRight;
    line += right ? PadLeft(cell, widths[i]) : PadRight(cell, widths[i]);
  }
  line = Styled(WithoutTrailingBlanks(std::move(line)), row.style, terminal);
  if (line.empty()) return "\n";
  return std::string(static_cast<size_t>(indent), ' ') + line + "\n";
}

}  // namespace ridge
