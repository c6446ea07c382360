// Seconds of one node by the roofline over a device profile.
//
//   seconds = max(flops / (peak * efficiency), bytes / bandwidth) + launch
// The efficiency is the cost class's curve at this size times the kernel's own share; the bandwidth
// is that of the smallest memory level that holds what the node touches.
#pragma once
#include "ridge/core/device_profile.h"
#include "ridge/graph/kernel_query.h"
#include "ridge/plan/program.h"

namespace ridge {

struct TimeEstimate {
  double seconds = 0;
  double modelled_s = 0;  // by the rates alone, whether the kernel was measured or not
  Bound bound = Bound::kLatency;
  bool measured = false;  // the profile holds this very kernel
};

const char* CostClassName(CostClass cost_class);  // "conv": key of DeviceProfile::efficiency

TimeEstimate EstimateTime(const DeviceProfile& profile, CostClass cost_class, DType dtype,
                          const Cost& cost, const KernelChoice& choice);

// The dtype whose peak rate prices a call: of a product the wider one of its first two operands,
// of all else its first float result.
DType PricedType(CostClass cost_class, const OpCall& call);

TimeEstimate EstimateNode(const DeviceProfile& profile, const PlannedNode& node);
// As if the node had this kernel.
TimeEstimate EstimateNode(const DeviceProfile& profile, const PlannedNode& node,
                          const KernelChoice& choice);
// Seconds of all nodes of a step, as often as they run.
double EstimateStep(const DeviceProfile& profile, const StepPlan& step);
// Seconds of a copy from one layout into another.
double EstimateReorder(const DeviceProfile& profile, const TensorType& type,
                       const KernelChoice& reorder);

// A typical CPU core of today with the instructions that are used, `threads` times: what kernels
// are chosen by.  The measured profile tells times, but must not pick kernels: a choice that
// followed the machine's mood would change the bits of a run from day to day.
DeviceProfile NominalProfile(int threads);

// Bytes per second when `bytes` are touched.
double BandwidthFor(const DeviceProfile& profile, int64_t bytes);

// The floor of a step: sum over its nodes of max(flops / peak, bytes / slowest memory).
double RooflineSeconds(const StepPlan& step, double peak_flops_per_s, double bytes_per_s);

}  // namespace ridge
