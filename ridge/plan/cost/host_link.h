// What crosses the link between a device and its host, where variables rest in the host's memory.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

struct LinkBytes {
  int64_t to_device = 0;
  int64_t to_host = 0;  // at the same time

  bool any() const { return to_device > 0 || to_host > 0; }
};

// Of one run of a node: each of its variables on the host once.
LinkBytes LinkBytesOf(const Program& program, const StepPlan& step, const PlannedNode& node);

// Over a link with so many bytes a second in one direction, of which copies and kernels reach 88 %.
double LinkSeconds(double to_device_bytes, double to_host_bytes, double link_bytes_per_s);

}  // namespace ridge
