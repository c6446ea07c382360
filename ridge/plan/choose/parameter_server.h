// A parameter server beside an all-reduce: what sums of gradients take by each.
//
//   all-reduce, a ring   each of n devices sends and receives 2 (n - 1) / n of the gradients
//   server               its port takes in the gradients of all, and sends all their weights: 2 n
// Li et al., "Scaling Distributed Machine Learning with the Parameter Server" (OSDI 2014); both and
// what lies between them: Jiang et al., "A Unified Architecture for Accelerating Distributed DNN
// Training" (BytePS, OSDI 2020).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/plan/hardware/collectives.h"

namespace ridge {

struct SumWays {
  int64_t devices = 1;
  double bytes = 0;               // of the gradients, as they are sent
  double sent_bytes = 0;          // by each device in a ring, in one direction
  double all_reduce_s = 0;        // alone, as collectives.h has it
  std::string all_reduce_source;  // "measured: vTrain, DGX A100"
  double port_bytes = 0;          // through the server's port, in both directions
  double server_s = 0;
};

// The server is one more device, or one more machine, with a link as the others have.  The devices
// of a machine add up first where there are several.  A server answers when all have sent.  None
// where a link's rate is not known.
std::optional<SumWays> CompareSums(const DeviceGroup& group, double bytes);

}  // namespace ridge
