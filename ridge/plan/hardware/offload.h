// Offload: variables of a device that is not here which rest in the memory of its host.
//
// Each node that reads such a variable gets it over the host's link, and what an update writes goes
// back; two copies' room on the device let transfers run beside the kernels.  The graph, its
// kernels and their bits are those of the plan without it.  Only planned: no backend of this
// program has two memories.
#pragma once
#include <string>

#include "ridge/plan/program.h"
#include "ridge/plan/total.h"

namespace ridge {

// What rests on the host: nothing, the optimizer's state, or parameters too.
enum class Offload { kNone, kOptimizer, kAll };

// "none", "optimizer" or "all".  REQUIRES: it is one of them.
Offload OffloadOf(const std::string& name);

struct OffloadPlan {
  int64_t host_bytes = 0;      // of the variables that rest there
  int64_t window_bytes = 0;    // of the device, in which they pass through
  double to_device_bytes = 0;  // over the link, in one update
  double to_host_bytes = 0;    // the same the other way, at the same time
  double transfer_s = 0;       // of an update, if nothing but the link ruled it
  double first_s = 0;          // until the first window is there
};

// `accumulate`: micro-batches of an update.  REQUIRES: the link's rate is above 0.
OffloadPlan PlanOffload(const Program& program, Offload offload, int64_t accumulate,
                        double host_link_bytes_per_s);

// The estimate without the bytes that rest on the host and with the window, as "communication".
MemoryEstimate WithOffload(MemoryEstimate memory, const Program& program, Offload offload,
                           const OffloadPlan& plan);

// Seconds of an update beside its transfers: the longer of both, behind the first window.
double SecondsBesideTransfers(double step_s, const OffloadPlan& plan);

}  // namespace ridge
