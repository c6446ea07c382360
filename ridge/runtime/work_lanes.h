// WorkLanes: what may run at once of work that was told one after the other.
//
// Work must wait for what wrote the bytes that it reads or writes, and for what reads the bytes
// that it writes.  It is dealt to lanes, which run what they have in order, so at most so many
// pieces run at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ridge {

// The bytes that a piece of work reads and writes.  Empty ranges count for nothing.
struct MemoryUse {
  std::vector<std::span<const std::byte>> reads, writes;
};

class WorkLanes {
 public:
  explicit WorkLanes(int lanes) : tails_(static_cast<size_t>(lanes), kNone) {}

  // Takes the next piece of work: the first is number 0.  Returns those that it runs behind, one of
  // a lane at most, in the order of lanes; those that one of them runs behind are left out.
  std::vector<int> Add(const MemoryUse& use);
  // The last of each lane that has any: all work runs before or at one of them.
  std::vector<int> Tails() const;

 private:
  static constexpr int kNone = -1;
  // By lane: its last work that has run before; what came before it in the lane has, too.
  using Clock = std::vector<int>;

  struct Segment {
    uintptr_t end = 0;
    int writer = kNone;
    std::vector<int> readers;  // since it was written
  };
  using Segments = std::map<uintptr_t, Segment>;  // by their first byte

  // The segments of a range, which they fill, from `first` on.
  Segments::iterator Cover(std::span<const std::byte> range);
  void Cut(uintptr_t at);
  void WaitFor(int work, Clock& clock) const;
  size_t LaneBehind(const Clock& clock) const;
  std::vector<int> Direct(const Clock& clock) const;

  Segments segments_;
  std::vector<Clock> clocks_;  // by work: it is in its own
  std::vector<int> tails_;     // by lane
};

}  // namespace ridge
