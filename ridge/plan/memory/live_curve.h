// Live bytes at each step of a schedule, and their peak.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

// Adding to a range and asking for the peak take O(log steps).
class LiveCurve {
 public:
  // Starts at 0 bytes.  REQUIRES: steps >= 1.
  explicit LiveCurve(int steps);

  // Adds `bytes`, which may be negative, at the steps of [from, to]; none where from > to.
  void Add(int from, int to, int64_t bytes);

  int64_t peak_bytes() const { return most_[1]; }
  int peak_step() const;  // the first one at the peak

 private:
  void Add(size_t node, int first, int last, int from, int to, int64_t bytes);

  int steps_;
  // By node of a binary tree over the steps.
  std::vector<int64_t> most_;   // peak below the node, with its own added_
  std::vector<int64_t> added_;  // bytes added to all steps below the node
};

}  // namespace ridge
