#include "ridge/plan/choose/upgrades.h"

#include <algorithm>

namespace ridge {
namespace {

constexpr size_t kMostUpgrades = 4;

// Cards for games, for workstations and for servers are not sold to the same people.
std::string LineOf(const Hardware& hardware) {
  for (const char* line : {"GeForce", "RTX", "Radeon RX", "Arc"}) {
    if (hardware.name.starts_with(line)) return line;
  }
  return "";
}

bool IsSuccessor(const Hardware& device, const Hardware& other) {
  return other.vendor == device.vendor && other.form == device.form &&
         other.cooling == device.cooling && LineOf(other) == LineOf(device) && other.year &&
         device.year && *other.year > *device.year &&
         other.memory_gb.value_or(0) >= device.memory_gb.value_or(0);
}

}  // namespace

std::vector<const Hardware*> Successors(const Hardware& device,
                                        const std::vector<Hardware>& catalog) {
  std::vector<const Hardware*> successors;
  if (device.form.empty() || device.form == "soc") return successors;
  for (const Hardware& other : catalog) {
    if (IsSuccessor(device, other)) successors.push_back(&other);
  }
  std::stable_sort(successors.begin(), successors.end(),
                   [](const Hardware* a, const Hardware* b) { return *a->year < *b->year; });
  return successors;
}

Upgrade MakeUpgrade(const Hardware& from, const Offer& before, const Hardware& to, Offer offer) {
  Upgrade upgrade;
  upgrade.time_ratio = offer.time_s / before.time_s;
  if (offer.usd && before.usd && *before.usd > 0) upgrade.cost_ratio = *offer.usd / *before.usd;
  upgrade.missing = MissingFor(from, before.count, to, offer.count);
  upgrade.offer = std::move(offer);
  return upgrade;
}

std::vector<Upgrade> FasterOnes(double before_s, std::vector<Upgrade> upgrades) {
  std::vector<Upgrade> faster;
  for (Upgrade& upgrade : upgrades) {
    const bool is_faster = upgrade.offer.time_s < before_s;
    if (!upgrade.offer.is_allowed() || !is_faster || faster.size() == kMostUpgrades) continue;
    before_s = upgrade.offer.time_s;
    faster.push_back(std::move(upgrade));
  }
  return faster;
}

}  // namespace ridge
