// The training that a setting stands for: its graphs, and what two updates of them leave by the
// interpreter and by the executor.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/train/job/job.h"
#include "tests/crossing/settings.h"

namespace ridge::crossing {

// Variables and outputs as numbers, by name.
using Left = std::map<std::string, std::vector<double>>;

struct Training {
  Graph forward;
  ForwardInfo facts;
  DType lr_dtype = DType::kF32;
  int64_t accumulate = 1;
  std::vector<NamedGraph> graphs;  // as the planner gets them
  int64_t recomputed = 0;
  int64_t chunked = 0;
};

// Fails where the product refuses: nothing to train, a graph that cannot be cut.
Result<Training> BuildTraining(const std::string& text, const Setting& setting,
                               const Machine& machine);

// By the operators' references, one graph after the other, one slice after the other.
Result<Left> Interpret(const Training& training);

// How often plans did what is crossed here.
struct Uses {
  int64_t in_sections = 0;      // nodes that run beside others
  int64_t packed = 0;           // variables in a layout of their own
  int64_t copies = 0;           // reorders within steps
  int64_t in_place = 0;         // results over operands
  int64_t first_slices = 0;     // values that the first slice writes into a sum
  int64_t recomputed = 0;       // values that are made again
  int64_t chunked = 0;          // trainings whose logits are cut
  std::string Missing() const;  // the first that never happened; empty: none
};

// Plans the training for the machine and runs it; adds to `uses`.
Result<Left> Execute(const Training& training, const Setting& setting, const Machine& machine,
                     Uses& uses);

// Where they differ by more than `bound` times the largest of the value's elements: "w[3] is 1,
// should be 2"; empty: nowhere.  A bound of 0 asks for the same numbers.
std::string Difference(const Left& want, const Left& have, double bound);

// Whether all is finite and small enough that rounding says nothing of the planner.
bool IsTame(const Left& left);

}  // namespace ridge::crossing
