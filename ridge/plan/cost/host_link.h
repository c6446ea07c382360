// What crosses the link between a device and its host, where variables rest in the host's memory.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

struct LinkBytes {
  int64_t to_device = 0;
  int64_t to_host = 0;  // at the same time

  bool any() const { return to_device > 0 || to_host > 0; }
};

// Of one run of a node: each of its variables and values on the host once.  A node that the host
// runs moves none.
LinkBytes LinkBytesOf(const Program& program, const StepPlan& step, const PlannedNode& node);

// Of a link's bytes a second in one direction, copies of pinned memory and kernels reach so much:
// 55.6 of 63 GB/s over PCIe 5 (NVIDIA's nvbandwidth).
inline constexpr double kLinkShare = 0.88;

// Over a link with so many bytes a second in one direction, of which kLinkShare is reached.
double LinkSeconds(double to_device_bytes, double to_host_bytes, double link_bytes_per_s);

}  // namespace ridge
