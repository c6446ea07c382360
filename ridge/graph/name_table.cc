#include "ridge/graph/name_table.h"

#include <bit>
#include <utility>

namespace ridge {

// Reinserts the entries after a freed slot, so that no search ends too early.
void NameTable::Erase(std::string_view name, int32_t index) {
  size_t at = Hash(name) & mask();
  while (slots_[at].index != index) at = (at + 1) & mask();
  slots_[at] = {};
  --size_;
  for (at = (at + 1) & mask(); slots_[at].index >= 0; at = (at + 1) & mask())
    Place(std::exchange(slots_[at], {}));
}

void NameTable::Grow(size_t wanted) {
  std::vector<Slot> old(std::bit_ceil(wanted < 16 ? size_t{16} : wanted));
  std::swap(old, slots_);
  for (const Slot& slot : old) {
    if (slot.index >= 0) Place(slot);
  }
}

}  // namespace ridge
