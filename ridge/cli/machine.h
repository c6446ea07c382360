// The machine that a verb plans for and runs on: a backend and its profile.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/measure/bench_step.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

struct MachineChoice {
  std::string device = "cpu";       // --device
  std::string backend = "cpu";      // --backend
  int64_t threads = 0;              // 0: all that may be used
  int64_t intra_op = 0;             // of them for one node; 0: all
  std::string inter_op = "1";       // --inter-op
  std::string conv = "direct";      // --conv
  std::string kernels = "default";  // --kernels; "all": every one, for timing them
  bool times = true;                // with tuned: those of this machine; else the caller has others
};

// What these flags ask for; of the options, what a verb that plans a step was given or has found.
struct TrainFlags;
MachineChoice ChoiceOf(const TrainFlags& flags);
MachineChoice ChoiceOf(const TrainFlags& flags, const TrainOptions& options);

struct OpenedMachine {
  std::unique_ptr<Backend> backend;
  Machine machine;  // looks into `backend`
};

// Whether there is such a device.  Fails with kDevice for cuda, kInvalidArgument for a name that is
// no device's.
Status CheckDevice(const std::string& flag, const std::string& device);

// The backend with the stored profile, or with a quick one that is measured now and stored; `say`
// is told so first.  The measuring is done by a child process, because its buffers would stay in
// this one's peak memory for good.  With `--kernels tuned` the seconds of kernels come along.
// Fails with kInvalidData when they were never taken here, or with another library.
Result<OpenedMachine> OpenMachine(const MachineChoice& choice,
                                  const std::function<void(const std::string&)>& say);

// Measures, when it is called, what all threads of this machine reach at best.
std::function<Result<MachinePeaks>(DType operands)> PeaksOf(const OpenedMachine& opened);

}  // namespace ridge::cli
