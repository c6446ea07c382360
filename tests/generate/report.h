// What a range of seeds came to.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/generate/check.h"

namespace ridge {

struct RangeReport {
  int64_t graphs = 0, nodes = 0, kinks = 0;
  int findings = 0;
  double seconds = 0;
  std::map<std::string, int64_t> operators;    // graphs in which it was drawn
  std::map<std::string, int64_t> not_checked;  // by reason
};

void CountGraph(const Graph& graph, const GraphJudgement& judgement, RangeReport& report);

// One line of counts; with `operators` also a line an operator.
void PrintReport(const RangeReport& report, bool operators);

// The differentiable operators that no graph has.
std::vector<std::string> NotDrawn(const RangeReport& report);

}  // namespace ridge
