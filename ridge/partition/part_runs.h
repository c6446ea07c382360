// PartRuns: where a device's part of a value lies in the whole, as runs of neighbours.
//
//   f32[4,6] cut [-,t] with t=2, device 1: 4 runs of 3 elements, at 3, 9, 15, 21 of the whole
//
// Both part and whole are row-major; runs are in rising order in both.  Positions are elements.
#pragma once
#include <algorithm>
#include <vector>

#include "ridge/partition/split.h"

namespace ridge {

class PartRuns {
 public:
  PartRuns(const Dims& dims, const Split& split, const MeshPlace& place);

  int64_t elements() const { return runs_ * length_; }  // of the part

  // How many elements of the part lie in [begin, end) of the whole.  They are neighbours in it.
  int64_t CountWithin(int64_t begin, int64_t end) const {
    return FirstFrom(end) - FirstFrom(begin);
  }
  // The first element of the part that lies at `place` of the whole or behind it.
  int64_t FirstFrom(int64_t place) const;

  // Calls f(whole, part, count) for what of each run lies in [begin, end) of the whole.
  template <typename F>
  void ForEachWithin(int64_t begin, int64_t end, const F& f) const {
    int64_t part = FirstFrom(begin);
    const int64_t last = FirstFrom(end);
    while (part < last) {
      const int64_t count = std::min(length_ - part % length_, last - part);
      f(PlaceOf(part / length_) + part % length_, part, count);
      part += count;
    }
  }

 private:
  int64_t PlaceOf(int64_t run) const;

  struct Along {
    std::vector<int64_t> places;  // of each index, or of each run's first one
    int64_t stride = 1;           // in the whole
  };
  std::vector<Along> outer_;  // dimensions up to the last one that is cut
  int64_t runs_ = 1, length_ = 1;
};

}  // namespace ridge
