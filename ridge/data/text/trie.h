// Trie: all pieces of a set that begin at a place of a text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ridge {

class Trie {
 public:
  // Of several equal pieces the first counts.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> pieces) {
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    nodes_.push_back({});
    std::vector<Range> ranges = {{0, pieces.size(), 0}};
    for (size_t node = 0; node < nodes_.size(); ++node) {
      AddChildren(pieces, node, ranges[node], ranges);
      ranges[node] = {};
    }
  }

  static constexpr int32_t kNone = -1;

  // Moves from a node along a byte; false when there is no way.
  bool Step(uint32_t& node, char byte) const {
    const Node& at = nodes_[node];
    const auto begin = nodes_.begin() + at.first, end = begin + at.count;
    const auto found = std::lower_bound(begin, end, static_cast<uint8_t>(byte),
                                        [](const Node& n, uint8_t b) { return n.byte < b; });
    if (found == end || found->byte != static_cast<uint8_t>(byte)) return false;
    node = static_cast<uint32_t>(found - nodes_.begin());
    return true;
  }
  int32_t Value(uint32_t node) const { return nodes_[node].value; }  // kNone: no piece ends here

 private:
  struct Node {
    uint32_t first = 0;  // child; children are neighbours, by their bytes
    uint16_t count = 0;
    uint8_t byte = 0;
    int32_t value = kNone;
  };
  struct Range {  // of sorted pieces that share their first `depth` bytes
    size_t begin = 0, end = 0, depth = 0;
  };

  void AddChildren(const std::vector<std::pair<std::string_view, int32_t>>& pieces, size_t node,
                   Range range, std::vector<Range>& ranges) {
    while (range.begin < range.end && pieces[range.begin].first.size() == range.depth) {
      if (nodes_[node].value == kNone) nodes_[node].value = pieces[range.begin].second;
      ++range.begin;
    }
    nodes_[node].first = static_cast<uint32_t>(nodes_.size());
    while (range.begin < range.end) {
      const char byte = pieces[range.begin].first[range.depth];
      size_t end = range.begin;
      while (end < range.end && pieces[end].first[range.depth] == byte) ++end;
      nodes_.push_back({0, 0, static_cast<uint8_t>(byte), kNone});
      ranges.push_back({range.begin, end, range.depth + 1});
      ++nodes_[node].count;
      range.begin = end;
    }
  }

  std::vector<Node> nodes_;
};

}  // namespace ridge
