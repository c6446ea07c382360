// A segment tree: a range that covers all steps of a node is added at the node, not below it.
#include "ridge/plan/memory/live_curve.h"

#include <algorithm>

namespace ridge {

LiveCurve::LiveCurve(int steps)
    : steps_(steps), most_(4 * static_cast<size_t>(steps), 0), added_(most_.size(), 0) {}

void LiveCurve::Add(int from, int to, int64_t bytes) {
  from = std::max(from, 0);
  to = std::min(to, steps_ - 1);
  if (from <= to) Add(1, 0, steps_ - 1, from, to, bytes);
}

void LiveCurve::Add(size_t node, int first, int last, int from, int to, int64_t bytes) {
  if (from <= first && last <= to) {
    most_[node] += bytes;
    added_[node] += bytes;
    return;
  }
  const int middle = (first + last) / 2;
  if (from <= middle) Add(2 * node, first, middle, from, to, bytes);
  if (to > middle) Add(2 * node + 1, middle + 1, last, from, to, bytes);
  most_[node] = added_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

int LiveCurve::peak_step() const {
  size_t node = 1;
  int first = 0, last = steps_ - 1;
  while (first < last) {
    const int middle = (first + last) / 2;
    const bool left = most_[2 * node] >= most_[2 * node + 1];
    node = 2 * node + (left ? 0 : 1);
    (left ? last : first) = left ? middle : middle + 1;
  }
  return first;
}

}  // namespace ridge
