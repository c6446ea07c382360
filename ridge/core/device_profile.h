// DeviceProfile: what the planner knows of a device, as data.
//
// Measured by the backend (`ridge bench device`), or the backend's nominal one, which decides.
// Measured ones are kept as JSON under the cache folder; rates are per second, sizes in bytes.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct MemoryLevel {
  std::string level;           // "L1", "L2", "L3", "DRAM"
  int64_t capacity_bytes = 0;  // of all cores in use together; DRAM: what the process may use
  double bytes_per_s = 0;      // triad, all threads
};

// Share of the peak rate that a class of operators reaches, by size of the work.
struct EfficiencyPoint {
  double flops = 0;  // of one call
  double efficiency = 0;
};

// How fast a kernel does so much: FLOPs, or bytes read and written (lower/kernel_rates.h).
struct KernelRate {
  double work = 0;   // of one call
  double per_s = 0;  // all threads, launch included
};

// How quiet the machine was while it was measured.
struct Steadiness {
  bool known = false;          // false: nobody looked, as in profiles of older formats
  double processor_share = 0;  // of the timed seconds of all threads that they were on a core
  double spread = 0;           // median of what second shortest times are above shortest ones
  double others_share = 0;     // of the seconds of the allowed cores that other processes took
};
// Whether times that were taken then are the machine's own.
bool IsSteady(const Steadiness& steadiness);
// "the machine was quiet", "other processes took 61 % of the cores"
std::string SteadinessText(const Steadiness& steadiness);

// What it costs to run small nodes at the same time, a thread each.
struct InterOpCosts {
  double region_s = 0;                  // to open a parallel region
  double start_s = 0;                   // of a kernel within one
  double core_to_core_bytes_per_s = 0;  // from another core's cache
};

struct DeviceProfile {
  std::string id;    // "cpu-AuthenticAMD-25-17-2": CPU type and threads; part of the file's name
  std::string name;  // "AMD EPYC (2 threads)"
  std::string instructions;  // of a CPU, "avx512_core_bf16"; empty: not known (older files)
  int threads = 1;
  std::map<std::string, double> peak_flops_per_s;  // by dtype
  std::vector<MemoryLevel> memory;                 // smallest first
  double launch_s = 0;                             // of one node
  // Of copies between the host and a device with memory of its own, each way, as measured; 0: not
  // measured.
  double host_link_bytes_per_s = 0;
  // Within training steps, by RateKey; the smallest work first.
  std::map<std::string, std::vector<KernelRate>> kernel_rates;
  // Of nominal profiles only, since nothing but decisions asks for them.
  double pointwise_flops_per_s = 0;  // of pointwise loops, all threads
  InterOpCosts inter_op;
  std::map<std::string, std::vector<EfficiencyPoint>> efficiency;  // by cost class: "conv"
  // By cost class, of devices that are not here: a call whose arithmetic alone takes so long
  // reaches half of its share.
  std::map<std::string, double> ramp_s;
  // Seconds of single kernels on this machine, by KernelChoice::key.
  std::map<std::string, double> kernel_s;
  // What a process holds beyond what the plan places: program, libraries, thread stacks; and what
  // every further kernel adds.
  int64_t runtime_bytes = 0;
  int64_t bytes_per_kernel = 0;
  bool quick = false;   // made in a hurry by `ridge train`
  std::string made_at;  // "2026-11-21T09:00:00Z"
  Steadiness steadiness;
  // The kernels of a plan took other times than these numbers say; and: the numbers were measured
  // again since, and are the same.
  bool contradicted = false, confirmed = false;
};

// Whether plans may rely on it until the machine changes; else it is measured again.
bool IsTrusted(const DeviceProfile& profile);
// Why not: "kernels took other times", or SteadinessText.  REQUIRES: !IsTrusted(profile).
std::string DistrustReason(const DeviceProfile& profile);
// Whether rates and levels of both differ by a third at most.
bool Agree(const DeviceProfile& a, const DeviceProfile& b);

std::string ProfileToJson(const DeviceProfile& profile);
Result<DeviceProfile> ProfileFromJson(const std::string& text, const std::string& file);

}  // namespace ridge
