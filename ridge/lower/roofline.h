// Roofline: the CostModel of a DeviceProfile.
//
//   seconds = max(flops / (peak * efficiency), bytes / bandwidth) + launch
// The efficiency is the cost class's curve at this size times the kernel's own share; the bandwidth
// is that of the smallest memory level that holds the bytes that the node touches.
// A kernel whose rates within training steps are known takes work / rate instead.
// (Williams, Waterman, Patterson, Roofline: An Insightful Visual Performance Model, 2009.)
#pragma once
#include <span>

#include "ridge/lower/cost_model.h"

namespace ridge {

class Roofline : public CostModel {
 public:
  explicit Roofline(DeviceProfile profile);

  const DeviceFacts& facts() const override { return facts_; }
  // measured_s is that of DeviceProfile::kernel_s, modelled_s by DeviceProfile::kernel_rates where
  // those have the kernel.
  TimeEstimate Estimate(const Work& work, const KernelChoice& choice) const override;
  double CachedSeconds(const Work& work, const KernelChoice& choice) const override;
  double BytesPerS(int64_t bytes) const override;

 private:
  double Efficiency(const Work& work, const KernelChoice& choice) const;
  TimeEstimate Model(const Work& work, const KernelChoice& choice,
                     std::span<const MemoryLevel> memory) const;

  const DeviceProfile profile_;
  const DeviceFacts facts_;
};

const char* CostClassName(CostClass cost_class);  // "conv": key of DeviceProfile::efficiency

// Bandwidth of a node that touches `bytes`.
double BandwidthFor(const DeviceProfile& profile, int64_t bytes);

}  // namespace ridge
