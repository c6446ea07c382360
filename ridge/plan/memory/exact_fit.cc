// Depth-first search over placements in which each buffer lies as low as those below it let it
// (Moffitt, MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning,
// ASPLOS 2023).  Buffers are placed by rising offset, so that each placement is visited once.
//
// Time is cut into sections: the largest sets of buffers that live at the same time.  A branch ends
// when a section cannot hold what is still to be placed above its floor; when it leaves a gap that
// a later buffer would fill; and after a failure above which nothing lies, since nothing depends on
// it.  Where no unplaced buffer crosses from one section to the next, both sides are solved on
// their own.
//
// Three orders of the buffers take turns, each with twice the nodes of its turn before.
#include "ridge/plan/memory/exact_fit.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>

namespace ridge {
namespace {

// Sections from `begin` to before `end`.
struct Span {
  int begin = 0, end = 0;
};

// Which buffers live in which sections.
struct Sections {
  std::vector<Span> spans;                // by buffer; empty: the buffer has no bytes
  std::vector<std::vector<int>> buffers;  // by section
};

Sections CutTime(const std::vector<Buffer>& buffers) {
  std::vector<std::tuple<int64_t, bool, int>> events;  // when, begins, buffer: ends come first
  for (int b = 0; b < static_cast<int>(buffers.size()); ++b) {
    if (buffers[b].size_bytes <= 0) continue;
    events.emplace_back(buffers[b].first, true, b);
    events.emplace_back(int64_t{buffers[b].last} + 1, false, b);
  }
  std::sort(events.begin(), events.end());
  Sections sections;
  sections.spans.resize(buffers.size());
  int count = 0;
  bool begun = false;
  for (const auto& [when, begins, b] : events) {
    if (begins) {
      sections.spans[b].begin = count;
      begun = true;
      continue;
    }
    if (begun) ++count;
    begun = false;
    sections.spans[b].end = count;
  }
  sections.buffers.resize(count);
  for (int b = 0; b < static_cast<int>(buffers.size()); ++b) {
    for (int s = sections.spans[b].begin; s < sections.spans[b].end; ++s)
      sections.buffers[s].push_back(b);
  }
  return sections;
}

enum class OrderBy { kWidthAreaTotal, kTotalAreaWidth, kTotalWidthArea };
constexpr std::array kOrders = {OrderBy::kWidthAreaTotal, OrderBy::kTotalAreaWidth,
                                OrderBy::kTotalWidthArea};

class Search {
 public:
  Search(const std::vector<Buffer>& buffers, int64_t limit)
      : buffers_(buffers),
        limit_(limit),
        sections_(CutTime(buffers)),
        placed_(buffers.size(), false),
        offsets_(buffers.size(), 0),
        overlaps_(LiveTogether(buffers)),
        lowest_(buffers.size(), 0),
        floor_(sections_.buffers.size(), 0),
        rest_(sections_.buffers.size(), 0),
        crossing_(sections_.buffers.size(), 0),
        is_touched_(sections_.buffers.size(), false) {
    for (int b = 0; b < static_cast<int>(buffers.size()); ++b) {
      const auto [begin, end] = sections_.spans[b];
      for (int s = begin; s < end; ++s) rest_[s] += buffers[b].size_bytes;
      for (int s = begin; s + 1 < end; ++s) ++crossing_[s];
    }
  }

  // Visits `most_nodes` at most, by one order.
  FitEnd Run(OrderBy by, int64_t most_nodes) {
    by_ = by;
    nodes_left_ = most_nodes;
    const Part all = {{0, static_cast<int>(sections_.buffers.size())}, WithBytes()};
    return Fits(all.span, 0) ? SolveParts(all, Cuts(all.span)) : FitEnd::kImpossible;
  }

  int64_t nodes_left() const { return nodes_left_; }

  // After kPlaced.
  Placement Found() const {
    Placement placement;
    placement.offsets.assign(buffers_.size(), 0);
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (buffers_[b].size_bytes <= 0) continue;
      placement.offsets[b] = offsets_[b];
      placement.peak_bytes = std::max(placement.peak_bytes, offsets_[b] + buffers_[b].size_bytes);
    }
    return placement;
  }

 private:
  // Sections that are solved on their own, with the buffers to place in them.
  struct Part {
    Span span;
    std::vector<int> buffers;  // in the order that breaks ties
  };

  struct Next {
    int64_t offset;
    int rank;  // in the part's buffers
    friend auto operator<=>(const Next&, const Next&) = default;
  };

  // What to undo: the state before a buffer was placed.
  struct Mark {
    size_t lowest, floors;
  };

  std::vector<int> WithBytes() const {
    std::vector<int> with;
    for (int b = 0; b < static_cast<int>(buffers_.size()); ++b) {
      if (buffers_[b].size_bytes > 0) with.push_back(b);
    }
    return with;
  }

  int64_t Total(int b) const {
    const auto [begin, end] = sections_.spans[b];
    return *std::max_element(rest_.begin() + begin, rest_.begin() + end);
  }

  void Sort(std::vector<int>& part) const {
    using Key = std::tuple<int64_t, int64_t, int64_t, int>;
    std::vector<Key> keys;
    for (int b : part) {
      const int64_t width = int64_t{buffers_[b].last} - buffers_[b].first + 1;
      const int64_t area = width * buffers_[b].size_bytes, total = Total(b);
      if (by_ == OrderBy::kWidthAreaTotal) keys.emplace_back(-width, -area, -total, b);
      if (by_ == OrderBy::kTotalAreaWidth) keys.emplace_back(-total, -area, -width, b);
      if (by_ == OrderBy::kTotalWidthArea) keys.emplace_back(-total, -width, -area, b);
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) part[i] = std::get<3>(keys[i]);
  }

  // Where parts of the span begin that no unplaced buffer connects; its end comes last.
  std::vector<int> Cuts(Span span) const {
    std::vector<int> cuts = {span.begin};
    for (int s = span.begin; s + 1 < span.end; ++s) {
      if (crossing_[s] == 0) cuts.push_back(s + 1);
    }
    cuts.push_back(span.end);
    return cuts;
  }

  FitEnd SolveParts(const Part& whole, const std::vector<int>& cuts) {
    for (size_t c = 1; c < cuts.size(); ++c) {
      Part part;
      part.span = {cuts[c - 1], cuts[c]};
      for (int b : whole.buffers) {
        if (!placed_[b] && sections_.spans[b].begin >= part.span.begin &&
            sections_.spans[b].end <= part.span.end)
          part.buffers.push_back(b);
      }
      if (part.buffers.empty()) continue;
      Sort(part.buffers);
      std::vector<Next> open;
      for (int rank = 0; rank < static_cast<int>(part.buffers.size()); ++rank)
        open.push_back({0, rank});
      const FitEnd end = Solve(part, open, {0, 0});
      if (end != FitEnd::kPlaced) return end;
    }
    return FitEnd::kPlaced;
  }

  // The unplaced of `open` at the offsets that they have now, lowest first.
  std::vector<Next> StillOpen(const Part& part, const std::vector<Next>& open) const {
    std::vector<Next> still;
    still.reserve(open.size());
    for (const Next& next : open) {
      const int b = part.buffers[next.rank];
      if (!placed_[b]) still.push_back({lowest_[b], next.rank});
    }
    std::sort(still.begin(), still.end());
    return still;
  }

  // Places the part's buffers; none comes before `least` in the order of offsets and ranks.
  FitEnd Solve(const Part& part, const std::vector<Next>& before, Next least) {
    const std::vector<Next> open = StillOpen(part, before);
    if (open.empty()) return FitEnd::kPlaced;
    if (nodes_left_ <= 0) return FitEnd::kGaveUp;
    --nodes_left_;
    // What lies at or above the lowest top leaves a gap for the buffer with that top.
    int64_t lowest_top = std::numeric_limits<int64_t>::max();
    for (const Next& next : open) {
      lowest_top = std::min(lowest_top, next.offset + buffers_[part.buffers[next.rank]].size_bytes);
    }
    for (const Next& next : open) {
      if (next < least) continue;
      if (next.offset >= lowest_top) break;
      const int b = part.buffers[next.rank];
      const Mark mark{lowest_before_.size(), floors_before_.size()};
      const bool last_in_place = !Put(b);
      const FitEnd end =
          Fits(part.span, next.offset) ? Continue(part, open, next) : FitEnd::kImpossible;
      TakeBack(b, mark);
      if (end != FitEnd::kImpossible) return end;
      if (last_in_place) break;
    }
    return FitEnd::kImpossible;
  }

  // After `last` was placed.
  FitEnd Continue(const Part& part, const std::vector<Next>& open, Next last) {
    const auto [begin, end] = sections_.spans[part.buffers[last.rank]];
    std::vector<int> cuts = {part.span.begin};
    for (int s = begin; s + 1 < end; ++s) {
      if (crossing_[s] == 0) cuts.push_back(s + 1);
    }
    if (cuts.size() == 1) return Solve(part, open, last);
    cuts.push_back(part.span.end);
    return SolveParts(part, cuts);
  }

  // Whether every section of the span can hold what it still lacks, at `offset` or above.
  bool Fits(Span span, int64_t offset) const {
    for (int s = span.begin; s < span.end; ++s) {
      if (rest_[s] > 0 && std::max(floor_[s], offset) + rest_[s] > limit_) return false;
    }
    return true;
  }

  // Whether another buffer is to come above it.
  bool Put(int b) {
    offsets_[b] = lowest_[b];
    placed_[b] = true;
    const int64_t top = offsets_[b] + buffers_[b].size_bytes;
    const auto [begin, end] = sections_.spans[b];
    for (int s = begin; s < end; ++s) {
      SetFloor(s, top);
      rest_[s] -= buffers_[b].size_bytes;
    }
    for (int s = begin; s + 1 < end; ++s) --crossing_[s];
    touched_.clear();
    for (int s = begin; s < end; ++s) Touch(s);
    bool more = false;
    for (int other : overlaps_[b]) {
      if (placed_[other]) continue;
      more = true;
      if (lowest_[other] < top) Lift(other, top);
    }
    for (int s : touched_) {
      is_touched_[s] = false;
      RaiseFloor(s);
    }
    return more;
  }

  void Lift(int b, int64_t lowest) {
    const int64_t before = lowest_[b];
    lowest_before_.emplace_back(b, before);
    lowest_[b] = lowest;
    const auto [begin, end] = sections_.spans[b];
    for (int s = begin; s < end; ++s) {
      if (floor_[s] == before) Touch(s);
    }
  }

  void Touch(int s) {
    if (!is_touched_[s]) touched_.push_back(s);
    is_touched_[s] = true;
  }

  // A section's floor is the lowest offset of what it lacks.
  void RaiseFloor(int s) {
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (int b : sections_.buffers[s]) {
      if (placed_[b]) continue;
      if (lowest_[b] == floor_[s]) return;
      lowest = std::min(lowest, lowest_[b]);
    }
    if (rest_[s] > 0) SetFloor(s, lowest);
  }

  void SetFloor(int s, int64_t floor) {
    floors_before_.emplace_back(s, floor_[s]);
    floor_[s] = floor;
  }

  // Its offset stays: on the way back from a success it is the one found.
  void TakeBack(int b, Mark mark) {
    placed_[b] = false;
    const auto [begin, end] = sections_.spans[b];
    for (int s = begin; s < end; ++s) rest_[s] += buffers_[b].size_bytes;
    for (int s = begin; s + 1 < end; ++s) ++crossing_[s];
    for (; floors_before_.size() > mark.floors; floors_before_.pop_back())
      floor_[floors_before_.back().first] = floors_before_.back().second;
    for (; lowest_before_.size() > mark.lowest; lowest_before_.pop_back())
      lowest_[lowest_before_.back().first] = lowest_before_.back().second;
  }

  const std::vector<Buffer>& buffers_;
  const int64_t limit_;
  const Sections sections_;
  OrderBy by_ = OrderBy::kWidthAreaTotal;
  int64_t nodes_left_ = 0;

  std::vector<char> placed_;                // by buffer
  std::vector<int64_t> offsets_;            // by buffer: where it lies or lay last
  std::vector<std::vector<int>> overlaps_;  // by buffer: what lives beside it
  std::vector<int64_t> lowest_;  // by unplaced buffer: the top of what is placed in its sections
  std::vector<int64_t> floor_;   // by section: nothing more goes below
  std::vector<int64_t> rest_;    // by section: bytes to place
  std::vector<int> crossing_;    // unplaced buffers that live in the section and in the next
  std::vector<std::pair<int, int64_t>> lowest_before_, floors_before_;  // what Put changed

  std::vector<int> touched_;  // sections of lifted buffers
  std::vector<char> is_touched_;
};

}  // namespace

FitResult PlaceWithin(const std::vector<Buffer>& buffers, int64_t limit_bytes, int64_t most_nodes) {
  FitResult result;
  Search search(buffers, limit_bytes);
  for (int64_t turn = std::min<int64_t>(most_nodes, 2 * std::ssize(buffers) + 1); turn > 0;) {
    for (const OrderBy by : kOrders) {
      const int64_t allowed = std::min(turn, most_nodes - result.nodes);
      result.end = search.Run(by, allowed);
      result.nodes += allowed - search.nodes_left();
      if (result.end == FitEnd::kPlaced) result.placement = search.Found();
      if (result.end != FitEnd::kGaveUp || result.nodes >= most_nodes) return result;
    }
    turn *= 2;
  }
  return result;
}

}  // namespace ridge
