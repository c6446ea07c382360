// PrefetchQueue asks the caches for rows that are needed soon, a few at a time between other work.
//
// Rows of a few hundred bytes, each in a page of its own, are too few for the processor to predict
// the next; a kernel that knows its next task names its rows here and calls Fetch often, since a
// long run of requests would wait for itself.  They go to the second cache: what is computed now
// has the first.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace ridge::cpu {

class PrefetchQueue {
 public:
  // `count` rows of `width` floats, `row` floats apart, that will be read or written; at most 8.
  void Add(const float* rows, int64_t row, int64_t width, int64_t count) {
    if (size_ == rows_.size() || count == 0) return;
    rows_[size_++] = {rows, row, width, count};
    all_ += count;
  }

  // What was added is shared out among `calls` calls of Fetch; later calls do nothing.
  void ShareOut(int64_t calls) {
    calls = std::max<int64_t>(calls, 1);
    each_ = (all_ + calls - 1) / calls;
  }

  void Fetch() {
    constexpr int64_t kLine = 64 / sizeof(float);
    constexpr int kRead = 0, kSecondCache = 2;
    for (int64_t n = 0; n < each_ && set_ < size_; ++n) {
      const Rows& r = rows_[set_];
      const float* row = r.data + at_ * r.row;
      for (int64_t c = 0; c < r.width; c += kLine) __builtin_prefetch(row + c, kRead, kSecondCache);
      if (++at_ < r.count) continue;
      at_ = 0;
      ++set_;
    }
  }

 private:
  struct Rows {
    const float* data;
    int64_t row, width, count;
  };
  std::array<Rows, 8> rows_;
  size_t size_ = 0, set_ = 0;            // sets, the one that is asked for
  int64_t at_ = 0, all_ = 0, each_ = 0;  // its next row, rows of all sets, rows a call
};

}  // namespace ridge::cpu
