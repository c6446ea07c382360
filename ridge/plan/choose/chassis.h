// Chassis: the room that cards take in one machine, and what takes the place of a device.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {

// An ATX board has seven slots (ATX specification 2.2); the longest chassis have eight.
inline constexpr int64_t kAtxSlots = 7, kMostSlots = 8;

struct Chassis {
  std::optional<int64_t> slots;  // null: no cards, or not known
  std::optional<int64_t> lanes;  // of PCIe; null likewise
};

Chassis ChassisOf(const Hardware& hardware, int64_t count);

// What a chassis with `count` of one device lacks for `new_count` of another, "3 slots instead of
// 2", "another board: NVLink4"; "" where it takes them.
std::string MissingFor(const Hardware& from, int64_t count, const Hardware& to, int64_t new_count);

}  // namespace ridge
