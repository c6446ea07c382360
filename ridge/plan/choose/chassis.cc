#include "ridge/plan/choose/chassis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

namespace ridge {
namespace {

// "PCIe4x16": 16.
std::optional<int64_t> LanesOf(const std::string& host_link) {
  const size_t x = host_link.find('x');
  if (!host_link.starts_with("PCIe") || x == std::string::npos) return std::nullopt;
  int64_t lanes = 0;
  const char* const end = host_link.data() + host_link.size();
  if (std::from_chars(host_link.data() + x + 1, end, lanes).ec != std::errc()) return std::nullopt;
  return lanes;
}

// The board that carries modules fits one generation of their link.
bool HasOtherBoard(const Hardware& from, const Hardware& to) {
  return to.form == "module" && from.peer_link != to.peer_link;
}

}  // namespace

Chassis ChassisOf(const Hardware& hardware, int64_t count) {
  Chassis chassis;
  if (hardware.form != "card") return chassis;
  if (hardware.slots) chassis.slots = count * static_cast<int64_t>(*hardware.slots);
  if (const auto lanes = LanesOf(hardware.host_link)) chassis.lanes = count * *lanes;
  return chassis;
}

std::string MissingFor(const Hardware& from, int64_t count, const Hardware& to, int64_t new_count) {
  std::vector<std::string> missing;
  if (HasOtherBoard(from, to)) missing.push_back("another board: " + to.peer_link);
  const Chassis has = ChassisOf(from, count), needs = ChassisOf(to, new_count);
  if (has.slots && needs.slots && *needs.slots > *has.slots)
    missing.push_back(fmt::format("{} slots instead of {}", *needs.slots, *has.slots));
  if (from.power_w && to.power_w) {
    const double had = *from.power_w * static_cast<double>(count);
    const double wants = *to.power_w * static_cast<double>(new_count);
    if (wants > had) missing.push_back(fmt::format("{:g} W instead of {:g} W", wants, had));
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace ridge
