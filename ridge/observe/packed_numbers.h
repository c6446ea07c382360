// PackedNumbers: what ranks count apart, as numbers that one sends to another.  Counts are whole
// numbers below 2^53, so nothing is lost.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

using PackedNumbers = std::vector<double>;

template <typename T>
void PackAll(const std::vector<T>& numbers, PackedNumbers& to) {
  for (const T& number : numbers) to.push_back(static_cast<double>(number));
}

// Takes numbers from the front, in the order in which they were packed.
class NumberReader {
 public:
  explicit NumberReader(std::span<const double> numbers) : left_(numbers) {}

  double Take() {
    RIDGE_CHECK(!left_.empty(), "ranks count the same things");
    const double first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  int64_t TakeCount() { return static_cast<int64_t>(Take()); }
  void AddCounts(std::vector<int64_t>& to) {
    for (int64_t& count : to) count += TakeCount();
  }

 private:
  std::span<const double> left_;
};

}  // namespace ridge
