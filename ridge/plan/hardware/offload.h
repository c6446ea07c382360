// Offload: variables of a device with a memory of its own which rest in the memory of its host.
//
// The optimizer's state is reached where it rests: the kernels of an update, which read and write
// each number once, are as long as the link takes.  Parameters, which kernels read more than once,
// would pass through two windows of the device, so that transfers run beside the kernels; that is
// only planned.  The graph, its kernels and their bits are those of the plan without it.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/program.h"
#include "ridge/plan/total.h"

namespace ridge {

// What rests on the host: nothing, the optimizer's state, or parameters too.
enum class Offload { kNone, kOptimizer, kAll };

// "none", "optimizer" or "all".  REQUIRES: it is one of them.
Offload OffloadOf(const std::string& name);

// PlanOptions::on_host.
std::vector<Purpose> PurposesOnHost(Offload offload);

// Whether kernels reach what rests on the host, and nothing passes through windows.
inline bool IsReachedInPlace(Offload offload) { return offload == Offload::kOptimizer; }

struct OffloadPlan {
  std::vector<std::string> placed = {};  // parameters that the host's cores read and update
  int64_t host_bytes = 0;                // of the variables that rest there, in whole pages
  int64_t window_bytes = 0;    // of the device, in which they pass through; 0: reached in place
  double to_device_bytes = 0;  // over the link, in one update
  double to_host_bytes = 0;    // the same the other way, at the same time
  double transfer_s = 0;       // of an update, if nothing but the link ruled it
  double first_s = 0;          // until the first window is there
};

// `accumulate`: micro-batches of an update.  REQUIRES: the link's rate is above 0 where windows are
// needed; else the seconds are 0 without it.
OffloadPlan PlanOffload(const Program& program, Offload offload, int64_t accumulate,
                        double host_link_bytes_per_s);

// The estimate with the windows, as "communication".
MemoryEstimate WithWindows(MemoryEstimate memory, const OffloadPlan& plan);

// Seconds of an update beside its transfers: the longer of both, behind the first window.  In
// place they are part of the kernels' seconds.
double SecondsBesideTransfers(double step_s, const OffloadPlan& plan);

}  // namespace ridge
