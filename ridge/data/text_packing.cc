#include "ridge/data/text_packing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ridge/core/random.h"
#include "ridge/data/permutation.h"

namespace ridge {
namespace {

constexpr uint32_t kPackingStream = 0x7061636b;

int64_t BytesOf(const std::vector<uint32_t>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(uint32_t));
}

}  // namespace

TextPacking::TextPacking(std::span<const int32_t> lengths, int64_t length, uint64_t seed)
    : seed_(seed), order_(lengths.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });
  std::vector<int32_t> sorted;
  sorted.reserve(order_.size());
  for (const uint32_t text : order_) sorted.push_back(lengths[text]);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i] != sorted[i - 1]) runs_.push_back(static_cast<uint32_t>(i));
  }
  runs_.push_back(static_cast<uint32_t>(sorted.size()));
  runs_.shrink_to_fit();
  Place(sorted, length);
}

void TextPacking::Place(const std::vector<int32_t>& sorted, int64_t length) {
  std::map<int64_t, std::vector<uint32_t>> with_room;  // rows, the newest last
  std::vector<uint32_t> row_of(sorted.size()), counts;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto found = with_room.lower_bound(sorted[i]);
    int64_t room = length;
    uint32_t row = static_cast<uint32_t>(counts.size());
    if (found == with_room.end()) {
      counts.push_back(0);
    } else {
      room = found->first;
      row = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) with_room.erase(found);
    }
    row_of[i] = row;
    ++counts[row];
    with_room[room - sorted[i]].push_back(row);
  }
  row_begins_.assign(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), row_begins_.begin() + 1);
  places_.resize(sorted.size());
  std::vector<uint32_t> next = row_begins_;
  for (size_t i = 0; i < sorted.size(); ++i) places_[next[row_of[i]]++] = static_cast<uint32_t>(i);
}

int64_t TextPacking::TextsOf(int64_t row) const {
  const auto r = static_cast<size_t>(row);
  return row_begins_[r + 1] - row_begins_[r];
}

int64_t TextPacking::TextAt(int64_t row, int64_t place, int64_t epoch) const {
  const uint32_t at = places_[row_begins_[static_cast<size_t>(row)] + static_cast<size_t>(place)];
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), at) - runs_.begin() - 1;
  const uint32_t begin = runs_[static_cast<size_t>(run)];
  const int64_t equal = runs_[static_cast<size_t>(run) + 1] - begin;
  const Permutation drawn(equal, seed_, kPackingStream + static_cast<uint32_t>(run), epoch);
  return order_[begin + static_cast<size_t>(drawn.At(at - begin))];
}

int64_t TextPacking::bytes() const {
  return BytesOf(order_) + BytesOf(runs_) + BytesOf(row_begins_) + BytesOf(places_);
}

PaddingShares SharesOf(std::span<const int32_t> lengths, int64_t length) {
  PaddingShares shares;
  shares.texts = static_cast<int64_t>(lengths.size());
  shares.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (shares.texts == 0) return shares;
  shares.rows = TextPacking(lengths, length, /*seed=*/0).rows();
  const auto padding = [&](int64_t rows) {
    return 1 - static_cast<double>(shares.tokens) / static_cast<double>(rows * length);
  };
  shares.alone = padding(shares.texts);
  shares.packed = padding(shares.rows);
  return shares;
}

}  // namespace ridge
