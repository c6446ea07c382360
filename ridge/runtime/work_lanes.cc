#include "ridge/runtime/work_lanes.h"

#include <algorithm>

namespace ridge {
namespace {

uintptr_t BeginOf(std::span<const std::byte> range) {
  return reinterpret_cast<uintptr_t>(range.data());
}
uintptr_t EndOf(std::span<const std::byte> range) { return BeginOf(range) + range.size(); }

}  // namespace

std::vector<int> WorkLanes::Add(const MemoryUse& use) {
  const auto work = static_cast<int>(clocks_.size());
  Clock clock(tails_.size(), kNone);
  for (const std::span<const std::byte> range : use.reads) {
    if (range.empty()) continue;
    for (auto at = Cover(range); at != segments_.end() && at->first < EndOf(range); ++at) {
      WaitFor(at->second.writer, clock);
      at->second.readers.push_back(work);
    }
  }
  for (const std::span<const std::byte> range : use.writes) {
    if (range.empty()) continue;
    for (auto at = Cover(range); at != segments_.end() && at->first < EndOf(range); ++at) {
      WaitFor(at->second.writer, clock);
      for (const int reader : at->second.readers) WaitFor(reader, clock);
      at->second.writer = work;
      at->second.readers.clear();
    }
  }
  const size_t lane = LaneBehind(clock);
  WaitFor(tails_[lane], clock);
  std::vector<int> behind = Direct(clock);
  clock[lane] = tails_[lane] = work;
  clocks_.push_back(std::move(clock));
  return behind;
}

std::vector<int> WorkLanes::Tails() const { return Direct(tails_); }

WorkLanes::Segments::iterator WorkLanes::Cover(std::span<const std::byte> range) {
  const uintptr_t begin = BeginOf(range), end = EndOf(range);
  Cut(begin);
  Cut(end);
  for (uintptr_t at = begin; at < end;) {
    const auto next = segments_.lower_bound(at);
    if (next != segments_.end() && next->first == at) {
      at = next->second.end;
      continue;
    }
    const uintptr_t until = next == segments_.end() ? end : std::min(next->first, end);
    segments_[at].end = until;
    at = until;
  }
  return segments_.find(begin);
}

// From here on no segment has `at` inside it.
void WorkLanes::Cut(uintptr_t at) {
  auto next = segments_.lower_bound(at);
  if (next == segments_.begin()) return;
  Segment& before = std::prev(next)->second;
  if (before.end <= at) return;
  Segment rest = before;
  before.end = at;
  segments_.emplace(at, std::move(rest));
}

// The work itself, or one that is being added, is in no clock yet.
void WorkLanes::WaitFor(int work, Clock& clock) const {
  if (work == kNone || work == static_cast<int>(clocks_.size())) return;
  const Clock& other = clocks_[static_cast<size_t>(work)];
  for (size_t lane = 0; lane < clock.size(); ++lane)
    clock[lane] = std::max(clock[lane], other[lane]);
}

// A lane whose work has all run before, the one whose last is the latest; else a lane without work;
// else that whose last work is the oldest.
size_t WorkLanes::LaneBehind(const Clock& clock) const {
  size_t best = 0;
  const auto rank = [&](size_t lane) {
    const bool waits = tails_[lane] != kNone && tails_[lane] == clock[lane];
    if (waits) return 2 + static_cast<int64_t>(tails_[lane]);
    return tails_[lane] == kNone ? int64_t{1} : -static_cast<int64_t>(tails_[lane]);
  };
  for (size_t lane = 1; lane < tails_.size(); ++lane) {
    if (rank(lane) > rank(best)) best = lane;
  }
  return best;
}

// The lasts of lanes, without those that another one of them runs behind.
std::vector<int> WorkLanes::Direct(const Clock& clock) const {
  std::vector<int> behind;
  for (size_t lane = 0; lane < clock.size(); ++lane) {
    const int work = clock[lane];
    const bool implied = std::any_of(clock.begin(), clock.end(), [&](int other) {
      return other != kNone && other != work && clocks_[static_cast<size_t>(other)][lane] >= work;
    });
    if (work != kNone && !implied) behind.push_back(work);
  }
  return behind;
}

}  // namespace ridge
