// Rates of kernels within training steps: what a profile predicts a plan with that never ran.
//
// A run of a kernel is rated by what bounds it: by its FLOPs where it does at least eight a byte,
// else by its bytes.  Either has rates of its own.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/device_profile.h"
#include "ridge/lower/cost_model.h"

namespace ridge {

struct KernelChoice;

// One run of a kernel on all threads.
struct TimedWork {
  double work = 0;
  double seconds = 0;
};

// FLOPs, or bytes read and written.
double RatedWork(const Work& work);
// Key of DeviceProfile::kernel_rates: "cpu.matmul_f32", "cpu.matmul_f32 by bytes".
std::string RateKey(const std::string& kernel, const Work& work);

// A point for each range of work, by a factor of four: its work over its seconds.
std::vector<KernelRate> CondenseRates(const std::vector<TimedWork>& runs);

// Linear between the points over logarithms; beyond them the rate of the nearest one.  None for
// kernels without rates, for no work, for more of it than runs that last microseconds can tell, and
// for choices of one thread.
std::optional<double> RatedSeconds(
    const std::map<std::string, std::vector<KernelRate>>& kernel_rates, const Work& work,
    const KernelChoice& choice);

}  // namespace ridge
