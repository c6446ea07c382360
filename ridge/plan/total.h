// Peak memory of the whole process: the arena and everything around it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ridge/lower/cost_model.h"
#include "ridge/plan/program.h"

namespace ridge {

struct MemoryEstimate {
  int64_t peak_bytes = 0;   // largest resident set of the process
  int64_t arena_bytes = 0;  // part of it
  int64_t bound_bytes = 0;  // lower bound of the arena for any placement
  // "parameters", "gradients", "optimizer", "activations", "workspace", "inputs", "communication",
  // "runtime": in this order, adding up to peak_bytes.
  std::vector<std::pair<std::string, int64_t>> breakdown;
  std::string peak_step;  // "train"
  std::string peak_node;  // where the live sum of that step is largest
  // The largest values live at that node, with the persistent ones: name and bytes, largest first.
  std::vector<std::pair<std::string, int64_t>> largest;
};

// Most heap memory that the program's kernels hold at one time.
int64_t HeapBytes(const Program& program);

// Nodes of all steps, each of which has a kernel.
int64_t CountKernels(const Program& program);

// Bytes of the process beside arena and data, by the device.
int64_t ProfiledRuntimeBytes(const DeviceFacts& device, const Program& program);

// `runtime_bytes`: program, libraries, kernels' code and heap, threads.  `data_bytes`: the data
// set's cache and what the input pipeline holds; counted under "inputs".  Gaps that placement could
// not fill are counted under "activations".
MemoryEstimate EstimateMemory(const Program& program, int64_t runtime_bytes, int64_t data_bytes);

}  // namespace ridge
