// BenchCollective: how fast bytes move between the ranks of a job.
//
//   all_to_all   each rank holds `bytes` and sends an equal part of them to each other rank
//   all_gather   each rank holds a part of `bytes`, and sends it to all others
//
// Both are one Exchange, and both move bytes * (n - 1) / n out of each rank: the rate is that
// number a second.
#pragma once
#include <string>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

struct CollectiveRate {
  std::string collective;
  int64_t ranks = 0, bytes = 0;
  double seconds = 0;  // of the slowest rank; median of several blocks
  double bytes_per_s() const;
};

struct CollectiveRequest {
  int64_t most_bytes = int64_t{16} << 20;  // sizes are 1 KiB, 4 KiB and so on up to it
  double block_s = 0.02;                   // of one block of repetitions
};

// The same at all ranks.  Counts of ranks are the powers of two below size(), and size().  Fails as
// Exchange does.  REQUIRES: at least two ranks.
Result<std::vector<CollectiveRate>> BenchCollective(Communicator& ranks,
                                                    const CollectiveRequest& request);

}  // namespace ridge
