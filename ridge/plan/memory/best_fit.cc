// The skyline of the placed buffers is a list of segments of time, each with its height.
// Repeatedly the lowest segment gets the best buffer whose life is within it; if there is none, the
// segment is raised to its lower neighbour, and the bytes below stay unused (Sekiyama et al.,
// Profile-guided memory optimization for deep neural networks, 2018, section 4).
//
// The buffers still to be placed are points (first, last) in a tree over both coordinates, which
// finds the best one with first >= a and last <= b by branch and bound.
//
// Known weakness: bytes under a raised segment are lost.  They are few, since the buffers of a
// training step nest: see the benchmark in bench/onnx_import.py.
#include "ridge/plan/memory/best_fit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

namespace ridge {
namespace {

constexpr int64_t kNothing = -1;

// Unplaced buffers by the span of their life.
class SpanTree {
 public:
  SpanTree(const std::vector<Buffer>& buffers, BestFitBy by)
      : buffers_(buffers), by_(by), order_(buffers.size()), leaf_of_(buffers.size(), -1) {
    std::iota(order_.begin(), order_.end(), 0);
    std::erase_if(order_, [&](int b) { return buffers[static_cast<size_t>(b)].size_bytes <= 0; });
    if (!order_.empty()) Build(0, static_cast<int>(order_.size()), /*parent=*/-1);
  }

  // The best unplaced buffer that lives within [first, last], or -1.
  int Find(int first, int last) const {
    Query query{first, last, kNothing, -1};
    if (!tree_.empty()) Search(0, query);
    return query.buffer;
  }

  void Remove(int buffer) {
    removed_[static_cast<size_t>(buffer)] = true;
    for (int n = leaf_of_[static_cast<size_t>(buffer)]; n >= 0;
         n = tree_[static_cast<size_t>(n)].parent) {
      tree_[static_cast<size_t>(n)].best = BestOf(n);
    }
  }

 private:
  static constexpr int kLeafSize = 8;

  struct TreeNode {
    int begin = 0, end = 0;  // into order_
    int parent = -1, left = -1, right = -1;
    int min_first = 0, max_first = 0, min_last = 0, max_last = 0;
    int64_t best = kNothing;  // largest worth of what is not yet placed
  };

  struct Query {
    int first, last;
    int64_t worth;
    int buffer;
  };

  int64_t Worth(int b) const {
    const Buffer& buffer = buffers_[static_cast<size_t>(b)];
    const int64_t length = int64_t{buffer.last} - buffer.first + 1;
    if (by_ == BestFitBy::kLength) return length;
    return by_ == BestFitBy::kSize ? buffer.size_bytes : buffer.size_bytes * length;
  }

  int Build(int begin, int end, int parent) {
    removed_.resize(buffers_.size(), false);
    const int index = static_cast<int>(tree_.size());
    tree_.push_back({.begin = begin, .end = end, .parent = parent});
    Measure(index);
    if (end - begin <= kLeafSize) {
      for (int i = begin; i < end; ++i) leaf_of_[static_cast<size_t>(order_[i])] = index;
      tree_[index].best = BestOf(index);
      return index;
    }
    const int middle = Split(index);
    const int left = Build(begin, middle, index);
    const int right = Build(middle, end, index);
    tree_[index].left = left;
    tree_[index].right = right;
    tree_[index].best = BestOf(index);
    return index;
  }

  void Measure(int index) {
    TreeNode& node = tree_[index];
    node.min_first = node.min_last = std::numeric_limits<int>::max();
    node.max_first = node.max_last = std::numeric_limits<int>::min();
    for (int i = node.begin; i < node.end; ++i) {
      const Buffer& buffer = buffers_[static_cast<size_t>(order_[i])];
      node.min_first = std::min(node.min_first, buffer.first);
      node.max_first = std::max(node.max_first, buffer.first);
      node.min_last = std::min(node.min_last, buffer.last);
      node.max_last = std::max(node.max_last, buffer.last);
    }
  }

  // Splits at the median of the wider coordinate.
  int Split(int index) {
    const TreeNode& node = tree_[index];
    const bool by_first = node.max_first - node.min_first >= node.max_last - node.min_last;
    const int middle = node.begin + (node.end - node.begin) / 2;
    std::nth_element(order_.begin() + node.begin, order_.begin() + middle,
                     order_.begin() + node.end, [&](int a, int b) {
                       const Buffer& x = buffers_[static_cast<size_t>(a)];
                       const Buffer& y = buffers_[static_cast<size_t>(b)];
                       return by_first
                                  ? std::tuple(x.first, x.last, a) < std::tuple(y.first, y.last, b)
                                  : std::tuple(x.last, x.first, a) < std::tuple(y.last, y.first, b);
                     });
    return middle;
  }

  int64_t BestOf(int index) const {
    const TreeNode& node = tree_[index];
    if (node.left >= 0) return std::max(tree_[node.left].best, tree_[node.right].best);
    int64_t best = kNothing;
    for (int i = node.begin; i < node.end; ++i) {
      if (!removed_[static_cast<size_t>(order_[i])]) best = std::max(best, Worth(order_[i]));
    }
    return best;
  }

  // The most that a buffer of the node can be worth to the query.
  int64_t Limit(const TreeNode& node, const Query& query) const {
    if (node.max_first < query.first || node.min_last > query.last) return kNothing;
    if (by_ != BestFitBy::kLength) return node.best;
    const int64_t span =
        int64_t{std::min(query.last, node.max_last)} - std::max(query.first, node.min_first) + 1;
    return std::min(node.best, span);
  }

  void Search(int index, Query& query) const {
    const TreeNode& node = tree_[index];
    if (node.left < 0) return SearchLeaf(node, query);
    const int64_t left = Limit(tree_[node.left], query);
    const int64_t right = Limit(tree_[node.right], query);
    const bool left_first = left >= right;
    if (std::max(left, right) > query.worth) Search(left_first ? node.left : node.right, query);
    if (std::min(left, right) > query.worth) Search(left_first ? node.right : node.left, query);
  }

  void SearchLeaf(const TreeNode& node, Query& query) const {
    for (int i = node.begin; i < node.end; ++i) {
      const int b = order_[i];
      const Buffer& buffer = buffers_[static_cast<size_t>(b)];
      if (removed_[static_cast<size_t>(b)]) continue;
      if (buffer.first < query.first || buffer.last > query.last || Worth(b) <= query.worth)
        continue;
      query.worth = Worth(b);
      query.buffer = b;
    }
  }

  const std::vector<Buffer>& buffers_;
  const BestFitBy by_;
  std::vector<int> order_;
  std::vector<int> leaf_of_;  // by buffer
  std::vector<bool> removed_;
  std::vector<TreeNode> tree_;
};

// The skyline: consecutive segments of time with their heights.
class Outline {
 public:
  struct Segment {
    int first = 0, last = 0;
    int64_t height = 0;
    int before = -1, after = -1;
    bool gone = false;
  };

  Outline(int first, int last) { Add({first, last, 0, -1, -1}); }

  // The index of the lowest segment; valid until Raise or Put changes the segment.
  int Lowest() {
    while (true) {
      const auto [height, first, index] = lowest_.top();
      const Segment& segment = segments_[static_cast<size_t>(index)];
      if (!segment.gone && segment.height == height && segment.first == first) return index;
      lowest_.pop();
    }
  }

  const Segment& at(int index) const { return segments_[static_cast<size_t>(index)]; }

  // Raises the segment to its lower neighbour.
  void Raise(int index) {
    const Segment& segment = at(index);
    int64_t height = std::numeric_limits<int64_t>::max();
    if (segment.before >= 0) height = std::min(height, at(segment.before).height);
    if (segment.after >= 0) height = std::min(height, at(segment.after).height);
    SetHeight(index, height);
  }

  // Places a buffer on the segment during [first, last].
  void Put(int index, int first, int last, int64_t size) {
    const Segment old = at(index);
    if (old.first < first) {
      const int left = Add({old.first, first - 1, old.height, old.before, index});
      if (old.before >= 0) segments_[static_cast<size_t>(old.before)].after = left;
      segments_[static_cast<size_t>(index)].before = left;
    }
    if (last < old.last) {
      const int right = Add({last + 1, old.last, old.height, index, old.after});
      if (old.after >= 0) segments_[static_cast<size_t>(old.after)].before = right;
      segments_[static_cast<size_t>(index)].after = right;
    }
    segments_[static_cast<size_t>(index)].first = first;
    segments_[static_cast<size_t>(index)].last = last;
    SetHeight(index, old.height + size);
  }

 private:
  using Key = std::tuple<int64_t, int, int>;  // height, first, index

  int Add(Segment segment) {
    const int index = static_cast<int>(segments_.size());
    segments_.push_back(segment);
    lowest_.emplace(segment.height, segment.first, index);
    return index;
  }

  // Merges neighbours of the same height into the segment.
  void SetHeight(int index, int64_t height) {
    Segment& segment = segments_[static_cast<size_t>(index)];
    segment.height = height;
    if (segment.before >= 0 && at(segment.before).height == height) {
      Segment& before = segments_[static_cast<size_t>(segment.before)];
      before.gone = true;
      segment.first = before.first;
      segment.before = before.before;
      if (segment.before >= 0) segments_[static_cast<size_t>(segment.before)].after = index;
    }
    if (segment.after >= 0 && at(segment.after).height == height) {
      Segment& after = segments_[static_cast<size_t>(segment.after)];
      after.gone = true;
      segment.last = after.last;
      segment.after = after.after;
      if (segment.after >= 0) segments_[static_cast<size_t>(segment.after)].before = index;
    }
    lowest_.emplace(height, segment.first, index);
  }

  std::vector<Segment> segments_;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> lowest_;
};

}  // namespace

Placement PlaceBestFit(const std::vector<Buffer>& buffers, BestFitBy by) {
  Placement placement;
  placement.offsets.assign(buffers.size(), 0);
  int first = std::numeric_limits<int>::max(), last = std::numeric_limits<int>::min();
  size_t open = 0;
  for (const Buffer& buffer : buffers) {
    first = std::min(first, buffer.first);
    last = std::max(last, buffer.last);
    open += buffer.size_bytes > 0 ? 1 : 0;
  }
  if (open == 0) return placement;
  SpanTree unplaced(buffers, by);
  Outline outline(first, last);
  while (open > 0) {
    const int lowest = outline.Lowest();
    const int b = unplaced.Find(outline.at(lowest).first, outline.at(lowest).last);
    if (b < 0) {
      outline.Raise(lowest);
      continue;
    }
    const Buffer& buffer = buffers[static_cast<size_t>(b)];
    const int64_t offset = outline.at(lowest).height;
    placement.offsets[static_cast<size_t>(b)] = offset;
    placement.peak_bytes = std::max(placement.peak_bytes, offset + buffer.size_bytes);
    outline.Put(lowest, buffer.first, buffer.last, buffer.size_bytes);
    unplaced.Remove(b);
    --open;
  }
  return placement;
}

}  // namespace ridge
