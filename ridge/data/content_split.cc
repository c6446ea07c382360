#include "ridge/data/content_split.h"

#include <algorithm>
#include <cmath>

namespace ridge {

void ContentHash::Add(std::string_view piece) {
  const auto add = [&](uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3; };
  for (char c : piece) add(static_cast<uint8_t>(c));
  add(0x1F);  // the unit separator of ASCII
}

uint64_t ContentHash::value() const {
  uint64_t z = hash_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

ContentSplit::ContentSplit(double fraction)
    : below_(static_cast<uint64_t>(std::ldexp(fraction, 64))), splits_(true) {
  RIDGE_CHECK(fraction > 0 && fraction < 1, "a part of the samples is held out");
}

bool ContentSplit::Count(uint64_t hash) {
  ++size_;
  least_ = std::min(least_, hash);
  greatest_ = std::max(greatest_, hash);
  if (HoldsOut(hash)) ++held_out_;
  return HoldsOut(hash);
}

ContentSplit ContentSplit::Uncounted() const {
  ContentSplit same;
  same.below_ = below_;
  same.splits_ = splits_;
  return same;
}

Result<bool> ContentSplit::Settle(const std::string& name) {
  if (!splits_ || size_ == 0 || (held_out_ > 0 && held_out_ < size_)) return true;
  if (least_ == greatest_) {
    return Status(ErrorCode::kInvalidData,
                  name + ": all samples are equal: none can be held out for validation");
  }
  below_ = held_out_ == 0 ? least_ + 1 : greatest_;
  *this = Uncounted();
  return false;
}

}  // namespace ridge
