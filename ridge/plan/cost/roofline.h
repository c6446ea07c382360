// Seconds of one node by the roofline over a device profile.
//
//   seconds = max(flops / (peak * efficiency), bytes / bandwidth) + launch
// The efficiency is the cost class's curve at this size times the kernel's own share; the bandwidth
// is that of the smallest memory level that holds the bytes that the node touches.
#pragma once
#include "ridge/core/device_profile.h"
#include "ridge/lower/kernel_query.h"
#include "ridge/plan/program.h"

namespace ridge {

struct TimeEstimate {
  double seconds = 0;
  double modelled_s = 0;  // by the rates alone, whether the kernel was measured or not
  Bound bound = Bound::kLatency;
  bool measured = false;  // the profile has a time of this kernel
};

const char* CostClassName(CostClass cost_class);  // "conv": key of DeviceProfile::efficiency

TimeEstimate EstimateTime(const DeviceProfile& profile, CostClass cost_class, DType dtype,
                          const Cost& cost, const KernelChoice& choice);

// The dtype whose peak rate prices a call: of a product the wider one of its first two operands,
// of all else its first float result.
DType PricedType(CostClass cost_class, const OpCall& call);

TimeEstimate EstimateNode(const DeviceProfile& profile, const PlannedNode& node);
// The same with another kernel.
TimeEstimate EstimateNode(const DeviceProfile& profile, const PlannedNode& node,
                          const KernelChoice& choice);
// Sum over the nodes of a step, each times its number of runs.
double EstimateStep(const DeviceProfile& profile, const StepPlan& step);
// Seconds of a copy from one layout into another.
double EstimateReorder(const DeviceProfile& profile, const TensorType& type,
                       const KernelChoice& reorder);

// `threads` typical CPU cores with the instruction set in use: the device that kernels are chosen
// for.  The measured profile predicts times but must not choose kernels: a choice that depends on
// the load of the machine would change the bits of a run from day to day.
DeviceProfile NominalProfile(int threads);

// Bandwidth of a node that touches `bytes`.
double BandwidthFor(const DeviceProfile& profile, int64_t bytes);

// Lower bound of a step: sum over its nodes of max(flops / peak, bytes / slowest memory).
double RooflineSeconds(const StepPlan& step, double peak_flops_per_s, double bytes_per_s);

}  // namespace ridge
