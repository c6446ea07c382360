#include "ridge/plan/choose/communication.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

constexpr int64_t kBucketBytes = 25 << 20;  // PyTorch's bucket_cap_mb
// NCCL beside kernels took 34 % longer than alone (Daydream, section 6.4).
constexpr double kBesideKernels = 1.34;

struct Bucket {
  double ahead_s = 0;  // of kernels that still run when it leaves
  int64_t bytes = 0;
};

std::vector<Bucket> BucketsOf(const std::vector<GradientReady>& gradients, double step_s) {
  std::vector<Bucket> buckets;
  for (const GradientReady& gradient : gradients) {
    if (buckets.empty() || buckets.back().bytes >= kBucketBytes) buckets.emplace_back();
    buckets.back().ahead_s = gradient.ahead * step_s;
    buckets.back().bytes += gradient.bytes;
  }
  return buckets;
}

// What is left of a sum that takes `alone_s` once the kernels have ended, if it starts `ahead_s`
// before their end.
double LeftBehindKernels(double alone_s, double ahead_s) {
  return std::max(0.0, alone_s - ahead_s / kBesideKernels);
}

}  // namespace

Communication SumGradients(const DeviceGroup& group, const std::vector<GradientReady>& gradients,
                           double step_s) {
  Communication communication;
  double free_ahead_s = step_s;  // before the kernels' end the link is free again; below 0: after
  for (const Bucket& bucket : BucketsOf(gradients, step_s)) {
    const std::optional<double> alone_s =
        AllReduceSeconds(group, static_cast<double>(bucket.bytes));
    if (!alone_s) return {};
    communication.busy_s += *alone_s;
    const double start_ahead_s = std::min(bucket.ahead_s, free_ahead_s);
    if (start_ahead_s <= 0) {
      free_ahead_s = start_ahead_s - *alone_s;
      continue;
    }
    const double left_s = LeftBehindKernels(*alone_s, start_ahead_s);
    free_ahead_s = left_s > 0 ? -left_s : start_ahead_s - *alone_s * kBesideKernels;
  }
  communication.exposed_s = std::max(0.0, -free_ahead_s);
  return communication;
}

double SecondsBesideKernels(double alone_s, double ahead_s) {
  const double beside_s = alone_s * kBesideKernels;
  return beside_s <= ahead_s ? beside_s : ahead_s + LeftBehindKernels(alone_s, ahead_s);
}

double StragglerFactor(int64_t count) {
  constexpr double kSpread = 0.01;
  return count < 2 ? 1 : 1 + kSpread * std::sqrt(2 * std::log(static_cast<double>(count)));
}

double LostShare(int64_t count) {
  constexpr double kDeviceHours = 54 * 24 * 16384.0 / 419, kLostHours = 0.5, kMost = 0.9;
  if (count < 2) return 0;
  return std::min(kMost, static_cast<double>(count) * kLostHours / kDeviceHours);
}

}  // namespace ridge
