// TuneKernels: measures the kernels that a model's nodes could take, for `--kernels tuned`.
//
// Where we come from: `ridge bench device --tune MODEL`.  A step is planned, all candidates of each
// node are timed in turn, and the step is planned with the measured times, until every candidate is
// timed.  Then whole steps of both plans are timed: a tuned plan that is not faster is discarded.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct TunedNode {
  std::string name, op;
  std::string usual, tuned;  // kernels, with their layouts
  double usual_s = 0, tuned_s = 0;
};

struct TuneReport {
  int64_t calls = 0, kernels = 0;  // timed
  std::vector<TunedNode> changed;  // largest gain first
  double usual_step_s = 0, tuned_step_s = 0;
  bool faster() const { return tuned_step_s < usual_step_s; }
};

// Adds to `kernel_s`, by KernelChoice::key; nothing when the tuned step is not faster.
// Fails as planning and running a step do.
Result<TuneReport> TuneKernels(const TrainOptions& options, const Machine& machine,
                               std::map<std::string, double>& kernel_s);

}  // namespace ridge
