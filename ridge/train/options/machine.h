// Machine: the device that a run is planned for and, if it is here, executed on.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/core/device_profile.h"
#include "ridge/dist/communicator.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/cost/sum_times.h"
#include "ridge/plan/hardware/collectives.h"
#include "ridge/plan/hardware/software.h"
#include "ridge/plan/parallel_regions.h"

namespace ridge {

class CounterSource;
class DeviceBytesLog;
class VirtualCompute;

// When gradients cross to other ranks: behind the step, beside it, or as the plan says is faster.
enum class GradientOverlap { kOff, kOn, kPlanned };

// How the entry of a GPU's driver in Machine::libraries begins.
inline constexpr char kDriverLibrary[] = "driver of CUDA ";

struct Machine {
  Backend* backend = nullptr;                    // not owned; nullptr: the device is not here
  KernelQuery* planned = nullptr;                // not owned: answers for a device that is not here
  int64_t memory_bytes = 0;                      // that a process may use on it; 0: not known
  int64_t used_before = 0;                       // bytes of a GPU that others use, in memory_bytes
  Software software = {};                        // that runs on a device that is not here
  std::string known_from = "what is published";  // of such a device
  double peak_flops_per_s = 0;                   // of that device, as its sheet has it
  double host_link_bytes_per_s = 0;              // of that device, one direction; 0: not known
  int64_t context_spread_bytes = 0;              // by which that device's context may be too large
  DeviceProfile profile;
  // `--kernels tuned`: measured seconds by KernelChoice::key, which choose between kernels.  Empty:
  // the nominal device chooses.
  std::map<std::string, double> kernel_s = {};
  InterOp inter_op = {};  // `--inter-op`
  // The place of this process among the ranks that train one model; with several of them, or with a
  // communicator, sums over slices are a tree's.
  int rank = 0, ranks = 1;
  // With `--shares auto`: slices of each rank (SliceShare::dealt).
  std::vector<int64_t> dealt = {};
  Communicator* communicator = nullptr;   // not owned; nullptr: several ranks are planned only
  SumTimes sums = {};                     // of so many ranks; not known: by the device's rates
  std::optional<DeviceGroup> group = {};  // ranks on such devices, which are not here
  GradientOverlap overlap = GradientOverlap::kOff;  // `--overlap`
  VirtualCompute* compute = nullptr;                // not owned; nullptr: kernels run
  CounterSource* counters = nullptr;                // not owned; nullptr: the device tells nothing
  // Beside the program's own code and the device, what bits depend on: "cuDNN 9.19.0"; and the
  // files of the first of them.
  std::vector<std::string> libraries = {}, library_paths = {};
  DeviceBytesLog* bytes = nullptr;  // not owned; nullptr: its memory is the host's
  int64_t recorded_run_bytes = 0;   // of RecordedBytes

  void Join(Communicator& job) {
    rank = job.rank();
    ranks = job.size();
    communicator = &job;
  }
  bool adds_in_tree() const { return ranks > 1 || communicator != nullptr; }

  bool is_here() const { return backend != nullptr; }
  // Of the cores that run kernels; of a GPU without any there 1.  REQUIRES: is_here().
  int threads() const {
    return backend->host() != nullptr ? backend->host()->threads() : backend->threads();
  }
  // Plans count the bytes of this process; else those of the device.
  bool in_host_memory() const { return is_here() && !backend->device().used_bytes(); }
  // Of the host's memory, what plans count.
  int64_t Counted(int64_t host_bytes) const { return in_host_memory() ? host_bytes : 0; }
  KernelQuery& query() const { return is_here() ? *backend : *planned; }
  Roofline measured() const { return Roofline(profile); }  // predicts the seconds of a plan
};

}  // namespace ridge
