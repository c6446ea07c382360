// A line is sampled once for each column of dots, so the work does not grow with the points drawn;
// neighbouring columns are joined by a vertical stroke.
#include "ridge/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ridge/report/text.h"

namespace ridge {
namespace {

constexpr std::array kStyles = {Style::kCyan, Style::kYellow, Style::kGreen, Style::kRed};
constexpr std::string_view kMarks = ".o+x";
constexpr int kNarrowest = 10;  // columns of the drawing

struct Range {
  double least = INFINITY, most = -INFINITY;
  void Add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return least > most; }
  // 0 to 1.
  double Place(double value) const { return most > least ? (value - least) / (most - least) : 0.5; }
};

struct Cell {
  uint8_t dots = 0;  // of a braille character
  int line = -1;
};

// The drawing: `across` by `down` dots in each cell.
struct Canvas {
  int columns = 0, rows = 0, across = 1, down = 1;
  std::vector<Cell> cells;  // row by row

  Canvas(int c, int r, bool braille)
      : columns(c),
        rows(r),
        across(braille ? 2 : 1),
        down(braille ? 4 : 1),
        cells(static_cast<size_t>(c) * static_cast<size_t>(r)) {}

  Cell& At(int column, int row) {
    return cells[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                 static_cast<size_t>(column)];
  }

  // From the left and the top.
  void Dot(int x, int y, int line) {
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = At(x / across, y / down);
    if (cell.line != line) cell = {0, line};
    cell.dots = static_cast<uint8_t>(cell.dots | kBits[y % down][x % across]);
  }
};

bool Finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

// The mean of the points of each of `count` columns; between them the line is straight.
std::vector<double> Sampled(const ChartLine& line, const Range& x, int count) {
  std::vector<double> sums(static_cast<size_t>(count), 0), counts = sums;
  for (const auto& point : line.points) {
    if (!Finite(point)) continue;
    const auto column = static_cast<size_t>(std::lround(x.Place(point.first) * (count - 1)));
    sums[column] += point.second;
    ++counts[column];
  }
  std::vector<double> values(sums.size(), NAN);
  size_t last = sums.size();  // the column of the last point; none yet
  for (size_t i = 0; i < sums.size(); ++i) {
    if (counts[i] == 0) continue;
    values[i] = sums[i] / counts[i];
    for (size_t between = last + 1; last < i && between < i; ++between) {
      const double part = static_cast<double>(between - last) / static_cast<double>(i - last);
      values[between] = values[last] + part * (values[i] - values[last]);
    }
    last = i;
  }
  return values;
}

void DrawLine(const std::vector<double>& values, const Range& y, int line, Canvas& canvas) {
  const int height = canvas.rows * canvas.down;
  int before = -1;
  for (int x = 0; x < static_cast<int>(values.size()); ++x) {
    const double value = values[static_cast<size_t>(x)];
    if (std::isnan(value)) continue;
    const int at = static_cast<int>(std::lround((1 - y.Place(value)) * (height - 1)));
    canvas.Dot(x, at, line);
    for (int dot = std::min(at, before) + 1; before >= 0 && dot < std::max(at, before); ++dot)
      canvas.Dot(x, dot, line);
    before = at;
  }
}

std::string Utf8(uint8_t dots) {  // U+2800 to U+28FF
  return {'\xe2', static_cast<char>(0xa0 + (dots >> 6)), static_cast<char>(0x80 + (dots & 0x3f))};
}

std::string CellText(const Cell& cell, bool braille) {
  if (cell.line < 0) return " ";
  if (braille) return Utf8(cell.dots);
  return std::string(1, kMarks[static_cast<size_t>(cell.line) % kMarks.size()]);
}

Style StyleOf(int line) { return kStyles[static_cast<size_t>(line) % kStyles.size()]; }

// Cells of one line in a row share their colour.
std::string RowText(Canvas& canvas, int row, bool braille, const Terminal& terminal) {
  std::string text, run;
  int line = -1;
  const auto end_run = [&] { text += line < 0 ? run : Styled(run, StyleOf(line), terminal); };
  for (int column = 0; column < canvas.columns; ++column) {
    const Cell& cell = canvas.At(column, row);
    if (cell.line != line) {
      end_run();
      run.clear();
      line = cell.line;
    }
    run += CellText(cell, braille);
  }
  if (line >= 0) end_run();  // no blanks at the end
  return text;
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

std::string Legend(const std::vector<ChartLine>& lines, bool braille, const Terminal& terminal) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string mark(1, kMarks[i % kMarks.size()]);
    const std::string name = Printable(lines[i].name);
    text += text.empty() ? "" : "  ";
    text += Styled(braille ? name : mark + " " + name, StyleOf(static_cast<int>(i)), terminal);
  }
  return text;
}

struct Ranges {
  Range x, y;
};

Ranges RangesOf(const std::vector<ChartLine>& lines) {
  Ranges ranges;
  for (const ChartLine& line : lines) {
    for (const auto& point : line.points) {
      if (!Finite(point)) continue;
      ranges.x.Add(point.first);
      ranges.y.Add(point.second);
    }
  }
  return ranges;
}

// The rows with the axis; the first and the last have a label, of `width` columns.
std::string RowsText(Canvas& canvas, const Range& y, int width, bool braille,
                     const Terminal& terminal, const std::string& indent) {
  const std::string bar = terminal.unicode ? "\u2502" : "|",
                    tick = terminal.unicode ? "\u2524" : "+";
  std::string text;
  for (int row = 0; row < canvas.rows; ++row) {
    const bool first = row == 0, last = row == canvas.rows - 1;
    const std::string label = first ? Number(y.most) : last ? Number(y.least) : "";
    text += fmt::format("{}{} {}{}\n", indent, PadLeft(label, width), first || last ? tick : bar,
                        RowText(canvas, row, braille, terminal));
  }
  return text;
}

}  // namespace

std::string LineChartText(const LineChart& chart, const Terminal& terminal,
                          const LineChartOptions& options) {
  const auto [x, y] = RangesOf(chart.lines);
  if (x.empty()) return "";
  const bool braille = terminal.unicode && (terminal.colour || chart.lines.size() == 1);
  const int label = std::max(DisplayWidth(Number(y.most)), DisplayWidth(Number(y.least)));
  const int width = std::min(terminal.width - 1, options.widest) - options.indent - label - 2;
  Canvas canvas(std::max(width, kNarrowest), options.rows, braille);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const std::vector<double> values = Sampled(chart.lines[i], x, canvas.columns * canvas.across);
    DrawLine(values, y, static_cast<int>(i), canvas);
  }
  const std::string indent(static_cast<size_t>(options.indent), ' ');
  const std::string left = indent + std::string(static_cast<size_t>(label) + 2, ' ');
  const std::string first = fmt::format("{} {}", chart.x_name, Number(x.least));
  return indent + Styled(Printable(chart.title), Style::kBold, terminal) + "\n" +
         RowsText(canvas, y, label, braille, terminal, indent) + left + first +
         PadLeft(Number(x.most), canvas.columns - DisplayWidth(first)) + "\n" + indent +
         Legend(chart.lines, braille, terminal) + "\n";
}

}  // namespace ridge
