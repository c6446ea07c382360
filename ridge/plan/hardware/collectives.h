// Collectives: seconds of an all-reduce among equal devices, by bytes and by how many they are.
//
// Within a machine by a measured table (collectives.toml) where it has the device and their number,
// else by the latencies that NCCL plans with and a share of the link's rate; between machines by
// those latencies and the network's rate (NCCL 2.30.7, src/graph/tuning.cc: the faster of a ring
// and a tree).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {

// Equal devices that add up values, `per_node` in each of `nodes` machines.
struct DeviceGroup {
  const Hardware* hardware = nullptr;
  int64_t per_node = 1;
  int64_t nodes = 1;
  double node_bytes_per_s = 0;  // of a machine's network, all adapters, one direction

  int64_t count() const { return per_node * nodes; }
};

// One of the groups into which `all` fall when they are numbered node by node and `size` of them,
// `stride` numbers apart, belong together.  The groups of a node share its network equally.
// REQUIRES: stride * size divides all.count().
DeviceGroup StridedGroup(const DeviceGroup& all, int64_t stride, int64_t size);

// Whether the devices of a machine reach each other by a link of their own; a bridge joins two.
bool HasPeerLink(const Hardware& hardware, int64_t count);

// One device needs none; none where a link's rate is not known.
std::optional<double> AllReduceSeconds(const DeviceGroup& group, double bytes);

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kSend,  // each device to the next one
};

// `bytes`: of the larger of what a device has before and after it.  All but kAllReduce take a
// ring's rate: switches that add (NVLS) help sums alone.  One device needs none; none where a
// link's rate is not known.
std::optional<double> CollectiveSeconds(const DeviceGroup& group, CollectiveKind kind,
                                        double bytes);

// "measured: nccl-tests#149" or "modelled"
std::string AllReduceSource(const DeviceGroup& group);

}  // namespace ridge
