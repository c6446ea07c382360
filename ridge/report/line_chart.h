// LineChart: how numbers change with the steps of a run, as lines in a terminal.
//
//   loss
//   2.31 ┤⢇
//        │⠈⢆      ⢀⣀
//   0.42 ┤  ⠑⠒⠒⠒⠒⠊⠁ ⠉⠉
//         step 50                1000
//   training  validation
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/report/terminal.h"

namespace ridge {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x rising; what is not finite is left out
};

struct LineChart {
  std::string title;
  std::string x_name;  // "step"
  std::vector<ChartLine> lines;
};

struct LineChartOptions {
  int indent = 2;
  int rows = 10;     // of the drawing
  int widest = 100;  // columns of the whole
};

// Braille dots with a colour for each line where the terminal has both, else a mark for each line:
// '.', 'o', '+', 'x'.  Where two lines meet, the later one is seen.  Between two points a line is
// straight; of several points in one column it has the mean.  "" when no line has a point.
std::string LineChartText(const LineChart& chart, const Terminal& terminal,
                          const LineChartOptions& options = {});

}  // namespace ridge
