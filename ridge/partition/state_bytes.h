// Bytes of what a training keeps, on each device.
#pragma once
#include "ridge/partition/layouts.h"
#include "ridge/partition/partition.h"

namespace ridge {

// Each variable is rounded up to 64 bytes, as the planner places it.
struct StateBytes {
  int64_t parameters = 0;
  int64_t gradients = 0;  // as updates read them, and the states that sum them
  int64_t optimizer = 0;
  int64_t other = 0;  // statistics, averages

  int64_t all() const { return parameters + gradients + optimizer + other; }
  bool operator==(const StateBytes&) const = default;
};

// What a partition gives a device.  `graph`: the whole one, in normal form.
StateBytes StateBytesOf(const Graph& graph, const Partitioned& parts);

// The formula of ZeRO (Rajbhandari et al., 2020) on `ranks` devices, with
// ceil(elements / ranks) of each variable that the stage cuts.  Gradients are cut from stage 1 on
// where they are reduced once an update, and then by stage 2 what sums them from batch to batch.
StateBytes ZeroStateBytes(const Graph& graph, int stage, int64_t ranks);

}  // namespace ridge
