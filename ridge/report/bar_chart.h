// BarChart: where memory or time goes, as horizontal bars.
//
//   activations  ██████████████████████  13.2 MiB
//   optimizer    █▍                       0.8 MiB
#pragma once
#include <span>
#include <string>

#include "ridge/report/terminal.h"

namespace ridge {

struct Bar {
  std::string label;
  double value = 0;  // negative or not a number: no bar
  std::string text;  // behind the bar, aligned at the right
};

struct BarChartOptions {
  int indent = 2;
  int bar_width = 30;     // columns of the longest bar; narrower where the terminal is
  double full_value = 0;  // what a full bar stands for; 0: the largest value
  Style style = Style::kCyan;
};

// One line a bar, in the order given.  Eighths of a block, or '#' and ':' (a half) in ASCII; a
// value above 0 shows at least the smallest mark.
std::string BarChart(std::span<const Bar> bars, const Terminal& terminal,
                     const BarChartOptions& options = {});

// The bar alone, for `fraction` in [0, 1] of `width` columns, without blanks behind it.
std::string BarText(double fraction, int width, bool unicode);

}  // namespace ridge
