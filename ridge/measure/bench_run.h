// BenchRun: `ridge bench run`: times a model's outputs on one random batch, forward only.
//
// Computes them as `ridge run` does, repeatedly on the same inputs in memory.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "ridge/train/options/machine.h"

namespace ridge {

struct BenchRunRequest {
  std::string model;
  int64_t batch = 1;
  std::map<std::string, int64_t> dims = {};  // further named dimensions
  int64_t runs = 1000;
  uint64_t seed = 0;  // of initial values and inputs
};

struct BenchRunResult {
  std::string model;
  int64_t batch = 0, threads = 0, nodes = 0;
  double first_s = 0, least_s = 0, median_s = 0;  // of one run
};

// Floats of the inputs are uniform in (-1, 1), integers 0; omits outputs that need labels.
// Fails as loading and planning do.
Result<BenchRunResult> BenchRun(const BenchRunRequest& request, const Machine& machine);

std::string BenchRunToJson(const BenchRunResult& result);  // one line

}  // namespace ridge
