#include "ridge/plan/choose/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridge {

std::string Balance::HeadroomText() const {
  return fmt::format("{:.2f} x", std::floor(100 * headroom()) / 100);
}

std::optional<Balance> BalanceOf(const Hardware& hardware, const StepWork& work,
                                 double peak_flops_per_s) {
  if (!hardware.memory_gb_s || work.bytes <= 0 || work.seconds <= 0) return std::nullopt;
  Balance balance;
  const double dies = std::max(1.0, hardware.dies.value_or(1));  // each is a device
  balance.memory_bytes_per_s = *hardware.memory_gb_s * 1e9 / dies;
  balance.bytes_per_s = work.bytes / work.seconds;
  balance.intensity = work.flops / work.bytes;
  balance.ridge_point = peak_flops_per_s / balance.memory_bytes_per_s;
  return balance;
}

}  // namespace ridge
