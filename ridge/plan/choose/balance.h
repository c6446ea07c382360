// Balance: what a step asks of a device's memory and arithmetic, beside what its sheet has.
#pragma once
#include <optional>
#include <string>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {

// Memory with less headroom than this is likely to be what a step waits for.
inline constexpr double kUsualHeadroom = 1.5;

struct Balance {
  double bytes_per_s = 0;         // that the step's kernels read and write
  double memory_bytes_per_s = 0;  // of the device's sheet
  double intensity = 0;           // flop a byte of the step
  double ridge_point = 0;         // flop a byte at which the sheet's rates take equally long

  double headroom() const { return memory_bytes_per_s / bytes_per_s; }
  // "1.49 x", rounded down, so that what is below a bound looks so.
  std::string HeadroomText() const;
  bool is_memory_bound() const { return intensity < ridge_point; }
};

// What a step does on one device.
struct StepWork {
  double flops = 0, bytes = 0;  // of all its kernels
  double seconds = 0;
};

// `peak_flops_per_s`: of products, as the sheet has it.  None where a factor is not known or zero.
std::optional<Balance> BalanceOf(const Hardware& hardware, const StepWork& work,
                                 double peak_flops_per_s);

}  // namespace ridge
