// The machine that a verb plans for and runs on: a backend and its profile.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/core/device_bytes.h"
#include "ridge/core/device_counters.h"
#include "ridge/measure/bench_step.h"
#include "ridge/plan/hardware/conv_workspaces.h"
#include "ridge/plan/hardware/hardware.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

struct MachineChoice {
  std::string device = "cpu";       // --device
  std::string device_memory = "";   // --device-memory
  std::string launch = "graph";     // --kernel-launch
  std::string backend = "cpu";      // --backend
  int64_t threads = 0;              // 0: all available
  int64_t intra_op = 0;             // threads of one node; 0: all
  std::string inter_op = "1";       // --inter-op
  std::string conv = "direct";      // --conv
  std::string kernels = "default";  // --kernels; "all": every one, for timing them
  bool tf32 = false;                // a GPU rounds products of f32 to it
  bool times = true;                // with tuned: those of this machine; else the caller has others
  bool counters = false;            // of a GPU, for Machine::counters
  bool host_kernels = false;        // beside a GPU's
  std::set<std::string> given = {};  // keys of the options that the user gave
};

// The choice of these flags; with `options`, of a verb that plans a step.
struct TrainFlags;
MachineChoice ChoiceOf(const TrainFlags& flags);
MachineChoice ChoiceOf(const TrainFlags& flags, const TrainOptions& options);

struct OpenedMachine {
  std::unique_ptr<Device> device;           // that the backend does not own; it goes last
  std::unique_ptr<Backend> host;            // its host's, for `--place`
  std::unique_ptr<Backend> backend;         // null for a device that is not here
  std::unique_ptr<Communicator> gpu_ranks;  // for the memory of GPUs; null: nothing but the hosts'
  std::unique_ptr<CounterSource> counters;  // of a GPU that tells them
  std::unique_ptr<DeviceBytesLog> bytes;    // of a GPU
  std::unique_ptr<KernelQuery> planned;     // of such a device
  std::unique_ptr<Hardware> hardware;       // of one of the catalog
  Machine machine;                          // points to one of them

  // The first of so many ranks, none of which runs.  REQUIRES: ranks > 1.
  void PlanRanks(int64_t ranks);
};

// N of "cuda:N", 0 of "cuda", none of "cpu".  Fails with kInvalidArgument for the name of no
// device.
Result<std::optional<int>> GpuOrdinal(const std::string& flag, const std::string& device);

// The kernel libraries of a machine without kernels of its host's, as KernelTimes names them.
std::string LibrariesOf(const Machine& machine);

// The backend with the stored profile, or with a quick one that is measured and stored after a
// notice to `say`.  A child process measures, because the buffers would stay in this process's peak
// memory.  With `--kernels tuned` loads the measured seconds of kernels.
// Fails with kInvalidData when there are none for this machine and library.  A GPU is opened as
// cuda_machine.h says.
Result<OpenedMachine> OpenMachine(const MachineChoice& choice,
                                  const std::function<void(const std::string&)>& say);

// A device that is not here: one of the catalog, or of a file (hardware.h).  Without
// `needs_memory` a CPU's memory may be unknown.  `ask_conv` is asked what is not on record.  Fails
// as FindHardware and PlanHardware do.
Result<OpenedMachine> OpenPlannedMachine(const Hardware& hardware, const std::string& precision,
                                         const std::string& software, bool needs_memory = true,
                                         AskConv ask_conv = nullptr);

// A CPU that `ridge bench device --record` measured, somewhere else or on another day; the kernels
// are those of its instructions on as many threads, or of this CPU's where the record does not say
// them or there are no rules for them.  Fails with kInvalidData for a file that is no record,
// or of a quick profile.
Result<OpenedMachine> OpenRecordedMachine(const std::string& path, const MachineChoice& choice);

// A function that measures the peak rates of all threads of this machine, or tells those of its
// GPU.
std::function<Result<MachinePeaks>(DType operands)> PeaksOf(const OpenedMachine& opened);

}  // namespace ridge::cli
