// Loss and accuracy of runs over their steps, drawn in the terminal or on a page.
#pragma once
#include <string>
#include <vector>

#include "ridge/report/terminal.h"
#include "ridge/train/store/run.h"

namespace ridge::cli {

// A chart of the loss, and of the accuracy where there is one.  Of one run: training, and the data
// that it was evaluated on; of several: a line each, of the evaluations where all have some, else
// of training.  "" without reports.
std::string CurvesText(const std::vector<Run>& runs, const Terminal& terminal);

// The same as SVG, a line for each run: charts of training, then of evaluations where any run has
// some.  "" without reports.
std::string CurvesHtml(const std::vector<Run>& runs);

}  // namespace ridge::cli
