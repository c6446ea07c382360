// TextPacking: texts of several lengths, whole and side by side, in rows of one length.
//
// The longest text comes first, and each goes into the row with the least room that takes it, so
// the rows are a function of the lengths alone.  Which of the texts of equal length stands at a
// place is drawn anew in each epoch, by (seed, epoch).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

class TextPacking {
 public:
  // REQUIRES: 1 <= each of `lengths` <= length; at most 2^31 of them.
  TextPacking(std::span<const int32_t> lengths, int64_t length, uint64_t seed);

  int64_t rows() const { return static_cast<int64_t>(row_begins_.size()) - 1; }
  int64_t texts() const { return static_cast<int64_t>(order_.size()); }

  // Texts of a row, from the left: places 0 .. TextsOf(row) - 1.
  int64_t TextsOf(int64_t row) const;
  int64_t TextAt(int64_t row, int64_t place, int64_t epoch) const;

  int64_t bytes() const;

 private:
  void Place(const std::vector<int32_t>& sorted, int64_t length);

  uint64_t seed_;
  std::vector<uint32_t> order_;       // texts, the longest first, then by number
  std::vector<uint32_t> runs_;        // begins of equal lengths in order_, and its end
  std::vector<uint32_t> row_begins_;  // in places_, and its end
  std::vector<uint32_t> places_;      // numbers in order_, row by row
};

// The share of padding where each text has a row of its own, and where rows are packed.
struct PaddingShares {
  int64_t texts = 0, tokens = 0, rows = 0;  // packed
  double alone = 0, packed = 0;
};
// Fails nowhere; REQUIRES as TextPacking.
PaddingShares SharesOf(std::span<const int32_t> lengths, int64_t length);

}  // namespace ridge
