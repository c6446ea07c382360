// ContentSplit: holds out samples by a hash of what they hold.
//
// A sample stays on its side when others are added, removed or shuffled, and equal samples are on
// one side.  So the number held out is near the fraction asked for, not equal to it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

// FNV-1a, mixed by the finalizer of SplitMix64.  Never changes: the split of old runs rests on it.
class ContentHash {
 public:
  void Add(std::string_view piece);  // "a","b" and "ab","" differ
  uint64_t value() const;

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

class ContentSplit {
 public:
  ContentSplit() = default;                // holds out nothing
  explicit ContentSplit(double fraction);  // REQUIRES: 0 < fraction < 1

  bool HoldsOut(uint64_t hash) const { return hash < below_; }

  // Counts a sample; returns HoldsOut.
  bool Count(uint64_t hash);
  int64_t size() const { return size_; }
  int64_t held_out() const { return held_out_; }

  // The same rule before it counts.
  ContentSplit Uncounted() const;

  // After all samples are counted.  True when both sides have some; else false, and the samples are
  // to be counted once more: then those with the least hash are held out, or all but those with the
  // greatest.  Fails with kInvalidData when all samples are equal.
  Result<bool> Settle(const std::string& name);

 private:
  uint64_t below_ = 0;
  int64_t size_ = 0, held_out_ = 0;
  uint64_t least_ = UINT64_MAX, greatest_ = 0;
  bool splits_ = false;
};

}  // namespace ridge
