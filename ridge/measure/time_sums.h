// TimeSums: how long the ranks of a job take to add up blocks of gradients, by bytes.
#pragma once
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/dist/communicator.h"
#include "ridge/plan/cost/sum_times.h"

namespace ridge {

struct SumRequest {
  int64_t least_bytes = int64_t{4} << 10;  // sizes are this, four times it and so on
  int64_t most_bytes = int64_t{16} << 20;
  double size_s = 0.03;  // that one size may take, but for the fewest rounds
};

// The same at all ranks: of each round the slowest rank, of the rounds the lower quartile, since
// other programs lengthen rounds and nothing shortens them.  Before each round every rank writes
// its block, as a step's kernels do.  Runs on the device's threads, in memory that is given back.
// Where the host does not reach that memory, f32 has the time of either type.  Fails as Exchange(),
// Allocate() and BlockAdder::Create() do.  REQUIRES: at least two ranks.
Result<std::vector<SumTime>> TimeSums(Communicator& ranks, Backend& backend, int threads,
                                      const SumRequest& request);

}  // namespace ridge
