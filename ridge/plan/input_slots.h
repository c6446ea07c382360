// The two slots of an input: one is filled while a step reads the other.
#pragma once
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// The index of what a step reads in `slot` where it names persistent value `index`: slot 1 of an
// input follows its slot 0, and everything else is one value.
inline size_t InSlot(const std::vector<PersistentValue>& persistent, size_t index, int slot) {
  const bool has_both = index + 1 < persistent.size() && persistent[index + 1].slot == 1;
  return slot == 1 && has_both ? index + 1 : index;
}

}  // namespace ridge
