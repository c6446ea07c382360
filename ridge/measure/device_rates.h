// Rates of a device by its own kernels: products, sums, what lies between two kernels; and by
// copies from and to the host.
//
// For devices whose clock tells a kernel's time (GPUs); CPUs are measured by backend/cpu/measure.h.
#pragma once
#include "ridge/backend/backend.h"
#include "ridge/core/device_profile.h"

namespace ridge {

// Work is doubled until it lasts long enough, within these limits.
struct DeviceRatesOptions {
  double long_enough_s = 1e-3;
  int64_t most_extent = 16384;                   // of square matrices that are multiplied
  int64_t most_sum_bytes = int64_t{3} << 28;     // read and written by a sum that no cache holds
  int64_t most_copied_bytes = int64_t{1} << 26;  // between the host and the device
  double budget_s = 0.3;                         // of each figure
};

// Operations a second of the fastest product of square matrices.
Result<double> MeasureProducts(Backend& backend, DType dtype, const DeviceRatesOptions& options);

// Bytes a second between the host's staging memory and the device's own, the slower way; 0 where
// the host follows the device's memory.
Result<double> MeasureHostLink(Device& device, const DeviceRatesOptions& options);

// Replaces in `profile` the peaks of the types that the device multiplies, by the fastest product;
// the bandwidth of each level, by a sum of two tensors that half of the level holds; launch_s, by
// chains of small kernels; and the rate of the link to the host.
Status MeasureDeviceRates(Backend& backend, const DeviceRatesOptions& options,
                          DeviceProfile& profile);

}  // namespace ridge
