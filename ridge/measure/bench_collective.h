// BenchCollective: how fast bytes move between the ranks of a job.
//
//   all_to_all   each rank holds `bytes` and sends an equal part of them to each other rank
//   all_gather   each rank holds a part of `bytes`, and sends it to all others
//
//   tree_sum     each rank holds `bytes`, and all get their sum (time_sums.h)
//   tree_sum_bf16  the same of f32 that is sent as bf16
//
// The first two are one Exchange, which moves bytes * (n - 1) / n out of each rank; a sum moves
// twice as many, and adds; as bf16 it moves as many.
#pragma once
#include <string>
#include <vector>

#include "ridge/measure/time_sums.h"

namespace ridge {

struct CollectiveRate {
  std::string collective;
  int64_t ranks = 0, bytes = 0;
  double seconds = 0;          // of the slowest rank; median of several blocks
  double bytes_per_s() const;  // that each rank sends
};

inline constexpr char kTreeSumRate[] = "tree_sum";
inline constexpr char kBF16SumRate[] = "tree_sum_bf16";

struct CollectiveRequest {
  int64_t most_bytes = int64_t{16} << 20;  // sizes are 1 KiB, 4 KiB and so on up to it
  double block_s = 0.02;                   // of one block of repetitions
  bool sums_alone = false;
};

// The same at all ranks.  Counts of ranks are the powers of two below size(), and size(); of sums
// size() alone.  `backend` adds, on `threads`.  Fails as TimeSums does.
// REQUIRES: at least two ranks.
Result<std::vector<CollectiveRate>> BenchCollective(Communicator& ranks, Backend& backend,
                                                    int threads, const CollectiveRequest& request);

}  // namespace ridge
