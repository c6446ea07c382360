// Peak memory of the whole process: the arena and everything around it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ridge/lower/cost_model.h"
#include "ridge/plan/program.h"

namespace ridge {

// In which the peak is expected, and by what.
struct MemoryRange {
  int64_t low_bytes = 0, high_bytes = 0;
  double scale = 1;  // Software::memory_scale, which is in the breakdown; 1: of ridge
  std::string evidence;
};

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
  std::optional<MemoryRange> range = {};  // of peak_bytes; none: the plan is exact
  bool is_placed = true;  // by ridge; else arena, peak_node and largest are those of ridge's plan

  // What must be there for the run to fit.
  int64_t needed_bytes() const { return range ? range->high_bytes : peak_bytes; }
  int64_t least_bytes() const { return range ? range->low_bytes : peak_bytes; }
};

// Most heap memory that the program's kernels hold at one time.
int64_t HeapBytes(const Program& program);

// Nodes of all steps, each of which has a kernel.
int64_t CountKernels(const Program& program);

// What recorded steps take of a device, for both input slots; `run_bytes`: each run of a node in
// them, 0 where nothing is recorded.
int64_t RecordedBytes(const Program& program, int64_t run_bytes);

// Bytes of the process beside arena and data, by the device.
int64_t ProfiledRuntimeBytes(const DeviceFacts& device, const Program& program);

// `runtime_bytes`: program, libraries, kernels' code and heap, threads.  `data_bytes`: the data
// set's cache and what the input pipeline holds; counted under "inputs".  Gaps that placement could
// not fill are counted under "activations".
MemoryEstimate EstimateMemory(const Program& program, int64_t runtime_bytes, int64_t data_bytes);

}  // namespace ridge
