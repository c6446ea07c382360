// BenchStep: `ridge bench step`: times training steps on one random batch.
//
// The batch stays in the input slot, as in the scripts of the comparison; the time excludes input.
// On several ranks all of them call it, and each times its own steps.
#pragma once
#include <functional>
#include <string>

#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"
#include "ridge/train/store/summary.h"

namespace ridge {

// Of a host as measured: the best of 20 matmuls 2048^3 of the vendor's library, and the best triad
// over four times the last cache.  Of a GPU what plans count with: published, or by its profile.
struct MachinePeaks {
  double flops_per_s = 0;  // 0: not known
  double bytes_per_s = 0;
};

struct BenchRequest {
  TrainOptions options;  // model, batch, optimizer, precision, seed, passes
  int64_t steps = 20;
  int64_t resident_at_main_bytes = 0;  // VmRSS at entry of main
  double rehearse_s = 0.15;
  // Called after the steps, since it allocates memory; may be empty.
  std::function<Result<MachinePeaks>(DType operands)> measure_peaks;
};

struct BenchResult {
  std::string model, optimizer, precision, version;
  int64_t batch = 0, slices = 1, threads = 0, params = 0;
  double ms_min = 0, ms_med = 0, ms_mean = 0, samples_s = 0, first_step_s = 0, peak_mb = 0;
  double loss0 = 0, loss = 0;  // of the first and the last step
  RunFigures planned, measured;
  MachinePeaks peaks;
  double model_flops = 0;  // of matmuls and convolutions, forward and backward
  double flops_floor_s = 0, roofline_step_s = 0;
  int ranks = 1;
  double compute_s = 0;          // of several ranks: planned, of what exchanges nothing
  bool virtual_compute = false;  // that was slept, and losses mean nothing
  std::optional<DeviceBytes> device_bytes = {};  // of a device with a memory of its own
};

Result<BenchResult> BenchStep(const BenchRequest& request, const Machine& machine);

std::string BenchToJson(const BenchResult& result);  // one line, with the contract's keys

}  // namespace ridge
