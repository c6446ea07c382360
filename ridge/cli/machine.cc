#include "ridge/cli/machine.h"

#include <fmt/format.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/measure.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/cli/self.h"
#include "ridge/cli/train_flags.h"
#include "ridge/core/threads.h"
#include "ridge/runtime/kernel_times.h"
#include "ridge/runtime/profile_store.h"

namespace ridge::cli {
namespace {

// The child stores what it measured; its output is used in case that the cache can't be written.
Result<DeviceProfile> MeasureInChild(int threads) {
  const Result<std::string> json =
      OutputOfSelf({"bench", "device", "--quick", "--threads", std::to_string(threads), "--json"});
  if (!json.ok()) {
    return Status(ErrorCode::kDevice,
                  fmt::format("measuring this machine: {}. hint: ridge bench device",
                              json.status().message()));
  }
  return ProfileFromJson(*json, "ridge bench device");
}

Result<std::unique_ptr<Backend>> MakeBackend(const MachineChoice& choice, int threads) {
  if (choice.backend == "reference") return MakeReferenceBackend();
  return MakeCpuBackend(
      threads, choice.conv == "direct" ? ConvKernels::kDirect : ConvKernels::kAuto,
      choice.kernels == "default" ? OfferedKernels::kUsual : OfferedKernels::kAll);
}

}  // namespace

MachineChoice ChoiceOf(const TrainFlags& flags) {
  return {.device = flags.device.value_or("cpu"),
          .backend = flags.backend.value_or("cpu"),
          .threads = flags.threads.value_or(0),
          .conv = flags.conv.value_or("direct")};
}

MachineChoice ChoiceOf(const TrainFlags& flags, const TrainOptions& options) {
  return {.device = options.device,
          .backend = flags.backend.value_or("cpu"),
          .threads = options.threads,
          .conv = options.conv,
          .kernels = options.kernels};
}

Status CheckDevice(const std::string& flag, const std::string& device) {
  if (device == "cpu") return {};
  if (device == "cuda" || device.starts_with("cuda:")) {
    return Status(
        ErrorCode::kDevice,
        fmt::format("{} is '{}': this version of ridge runs on the CPU only. hint: {} cpu", flag,
                    device, flag));
  }
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("{} is '{}'; it must be cpu or cuda[:N]", flag, device));
}

Result<OpenedMachine> OpenMachine(const MachineChoice& choice,
                                  const std::function<void(const std::string&)>& say) {
  RIDGE_RETURN_IF_ERROR(CheckDevice("--device", choice.device));
  const int threads = choice.threads > 0 ? static_cast<int>(choice.threads) : AvailableThreads();
  OpenedMachine opened;
  RIDGE_ASSIGN_OR_RETURN(
      opened.machine.profile, LoadOrMeasureProfile(CpuProfileId(threads), [&] {
        say("no profile of this machine yet: measuring a quick one (`ridge bench device` makes a "
            "better one)");
        return MeasureInChild(threads);
      }));
  RIDGE_ASSIGN_OR_RETURN(opened.backend, MakeBackend(choice, threads));
  opened.machine.backend = opened.backend.get();
  if (choice.kernels == "tuned" && choice.times && choice.backend == "cpu") {
    RIDGE_ASSIGN_OR_RETURN(KernelTimes times,
                           LoadKernelTimes(opened.machine.profile.id, CpuLibrary()));
    opened.machine.kernel_s = std::move(times.kernel_s);
  }
  return opened;
}

std::function<Result<MachinePeaks>(DType)> PeaksOf(const OpenedMachine& opened) {
  return [threads = opened.backend->threads()](DType operands) {
    return Result<MachinePeaks>(
        MachinePeaks{BestMatmulFlops(threads, operands), BestTriadBytesPerS(threads)});
  };
}

}  // namespace ridge::cli
