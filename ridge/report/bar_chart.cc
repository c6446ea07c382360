#include "ridge/report/bar_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ridge/report/text.h"

namespace ridge {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowestBar = 8;

struct Measures {
  int label = 0;
  int text = 0;
  double largest = 0;
};

Measures Measure(std::span<const Bar> bars) {
  Measures m;
  for (const Bar& bar : bars) {
    m.label = std::max(m.label, DisplayWidth(bar.label));
    m.text = std::max(m.text, DisplayWidth(bar.text));
    if (std::isfinite(bar.value)) m.largest = std::max(m.largest, bar.value);
  }
  return m;
}

}  // namespace

std::string BarText(double fraction, int width, bool unicode) {
  static constexpr std::array<const char*, 8> kEighths = {"",       "\u258F", "\u258E", "\u258D",
                                                          "\u258C", "\u258B", "\u258A", "\u2589"};
  if (!(fraction > 0) || width <= 0) return "";
  const int parts = unicode ? 8 : 2;
  const double wanted = std::round(std::min(fraction, 1.0) * width * parts);
  const int marks = std::max(static_cast<int>(wanted), 1);
  std::string bar;
  for (int i = 0; i < marks / parts; ++i) bar += unicode ? "\u2588" : "#";
  if (marks % parts != 0) bar += unicode ? kEighths[static_cast<size_t>(marks % parts)] : ":";
  return bar;
}

std::string BarChart(std::span<const Bar> bars, const Terminal& terminal,
                     const BarChartOptions& options) {
  Measures m = Measure(bars);
  int width = options.bar_width;
  if (terminal.is_terminal) {  // first the bar gives way, then the labels
    const int room = terminal.width - options.indent - 2 * kGap - m.text;
    width = std::clamp(room - m.label, std::min(width, kNarrowestBar), width);
    m.label = std::clamp(room - width, std::min(m.label, kNarrowestBar), m.label);
  }
  const double full = options.full_value > 0 ? options.full_value : m.largest;
  std::string text;
  for (const Bar& bar : bars) {
    const std::string drawn = BarText(bar.value / full, width, terminal.unicode);
    const std::string label = Shortened(Printable(bar.label), m.label, terminal.unicode);
    const std::string blanks(static_cast<size_t>(width - DisplayWidth(drawn)), ' ');
    std::string line = PadRight(label, m.label + kGap) + Styled(drawn, options.style, terminal) +
                       blanks + PadLeft(Printable(bar.text), m.text + kGap);
    line.erase(line.find_last_not_of(' ') + 1);
    text += std::string(static_cast<size_t>(options.indent), ' ') + line + "\n";
  }
  return text;
}

}  // namespace ridge
