// NameTable: maps names to value indices.  The values store the names themselves.
//
// A hash table of indices with open addressing: a copy is one block copy.  Look-up only, no
// iteration.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

// WANTED_2, WANTED_3, ...: a free name whose predecessor is taken, found by galloping, then
// bisection: taken numbers are dense, so 100,000 nodes "add" stay cheap.
template <typename Taken>
std::string FreeNumberedName(const std::string& wanted, const Taken& taken) {
  std::string name = wanted + "_";
  const auto numbered = [&](int64_t number) -> const std::string& {
    name.resize(wanted.size() + 1);
    return name += std::to_string(number);
  };
  int64_t free = 2;
  while (taken(numbered(free))) free *= 2;
  int64_t last_taken = free / 2;
  while (last_taken + 1 < free) {
    const int64_t middle = (last_taken + free) / 2;
    (taken(numbered(middle)) ? last_taken : free) = middle;
  }
  return numbered(free);
}

class NameTable {
 public:
  // The index whose name, `name_of(index)`, is `name`; -1 when there is none.
  template <typename NameOf>
  int32_t Find(std::string_view name, const NameOf& name_of) const {
    if (slots_.empty()) return -1;
    const uint32_t hash = Hash(name);
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.index < 0) return -1;
      if (slot.hash == hash && name_of(slot.index) == name) return slot.index;
    }
  }

  void Reserve(size_t count) {
    if (2 * count > slots_.size()) Grow(2 * count);
  }
  void Insert(std::string_view name, int32_t index) {  // REQUIRES: the name is absent
    Reserve(++size_);
    Place({Hash(name), index});
  }
  void Erase(std::string_view name, int32_t index);  // REQUIRES: the name is present

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t index = -1;  // -1: free
  };

  static uint32_t Hash(std::string_view name) {
    return static_cast<uint32_t>(std::hash<std::string_view>()(name));
  }
  size_t mask() const { return slots_.size() - 1; }
  void Place(Slot slot) {
    size_t at = slot.hash & mask();
    while (slots_[at].index >= 0) at = (at + 1) & mask();
    slots_[at] = slot;
  }
  void Grow(size_t wanted);

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  size_t size_ = 0;
};

}  // namespace ridge
