#include "ridge/cli/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/measure.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/backend/cuda/absent_gpu.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/cli/child_process.h"
#include "ridge/cli/cuda_machine.h"
#include "ridge/cli/train_flags.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/threads.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/runtime/kernel_times.h"
#include "ridge/runtime/profile_store.h"
#include "ridge/train/options/option_table.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {
namespace {

// Measured seconds of a step over those by a record: eight of ten lie between
// (docs/design/0022-cost-model.md).
constexpr double kRecordLow = 0.91, kRecordHigh = 1.31;

// The child stores nothing: whether its numbers replace others is not its to decide.
Result<DeviceProfile> MeasureInChild(int threads) {
  const Result<std::string> json = OutputOfChild(
      {"bench", "device", "--quick", "--dry-run", "--threads", std::to_string(threads), "--json"});
  if (!json.ok()) {
    return Status(ErrorCode::kDevice,
                  fmt::format("measuring this machine: {}. hint: ridge bench device",
                              json.status().message()));
  }
  return ProfileFromJson(*json, "ridge bench device");
}

ConvKernels ConvOf(const MachineChoice& choice) {
  return choice.conv == "direct" ? ConvKernels::kDirect : ConvKernels::kAuto;
}

bool TakesAllKernels(const MachineChoice& choice) { return choice.kernels != "default"; }

OfferedKernels OfferedOf(const MachineChoice& choice) {
  return TakesAllKernels(choice) ? OfferedKernels::kAll : OfferedKernels::kUsual;
}

Result<std::unique_ptr<Backend>> MakeBackend(const MachineChoice& choice, int threads) {
  if (choice.backend == "reference") return MakeReferenceBackend();
  return MakeCpuBackend(threads, ConvOf(choice), OfferedOf(choice));
}

// What the record says of its CPU's instructions; older ones by the names of their kernels.
std::optional<InstructionSet> RecordedInstructions(const DeviceProfile& profile) {
  if (const auto set = ParseInstructionSet(profile.instructions)) return set;
  std::optional<InstructionSet> widest;
  for (const auto& [kernel, rates] : profile.kernel_rates) {
    const size_t at = kernel.find(':');
    if (at == std::string::npos) continue;
    const std::string name = kernel.substr(at + 1, kernel.find(' ', at) - at - 1);
    const auto set = ParseInstructionSet(name);
    if (!set) continue;
    const bool bf16 = set->bf16 || (widest && widest->bf16);
    widest = {std::max(set->vectors, widest ? widest->vectors : set->vectors), bf16};
  }
  return widest;
}

// Adds to `known_from` what the record lacks.
Result<std::unique_ptr<Backend>> MakeRecordedBackend(const DeviceProfile& profile,
                                                     const MachineChoice& choice,
                                                     std::string& known_from) {
  if (choice.backend == "reference") return MakeBackend(choice, profile.threads);
  const auto instructions = RecordedInstructions(profile);
  if (instructions && CanPlanFor(*instructions))
    return MakePlannedCpu(profile.threads, *instructions, ConvOf(choice), OfferedOf(choice));
  known_from += instructions ? fmt::format(", by this CPU's kernels: those of {} are not known",
                                           InstructionSetName(*instructions))
                             : ", by this CPU's kernels: it does not name its instructions";
  return MakeBackend(choice, profile.threads);
}

// Who works: so many threads at one node, so many small nodes at a time.
struct Team {
  int threads = 1;
  InterOp inter_op;
};

Status AtMost(const char* flag, int64_t value, const char* limit_flag, int64_t limit,
              const char* why) {
  if (value <= limit) return Status();
  return InvalidArgument(
      fmt::format("{} is {}; it must be at most {}, {}{}", flag, value, limit_flag, limit, why));
}

Result<Team> TeamFor(const MachineChoice& choice) {
  const int64_t threads = choice.threads > 0 ? choice.threads : AvailableThreads();
  RIDGE_RETURN_IF_ERROR(CheckThreadLimit("--threads", threads));
  const int64_t intra_op = choice.intra_op > 0 ? choice.intra_op : threads;
  RIDGE_RETURN_IF_ERROR(AtMost("--intra-op", intra_op, "--threads", threads, ""));
  RIDGE_ASSIGN_OR_RETURN(const int64_t inter_op, ParseInterOp(choice.inter_op));
  RIDGE_RETURN_IF_ERROR(AtMost("--inter-op", inter_op, "--threads", threads, ""));
  if (intra_op > 1) {
    RIDGE_RETURN_IF_ERROR(AtMost("--inter-op", inter_op, "--intra-op", intra_op,
                                 ", or that must be 1: the same threads do both"));
  }
  const int64_t most = intra_op > 1 ? intra_op : threads;
  const bool given = inter_op != kAutoInterOp;
  return Team{static_cast<int>(intra_op), {static_cast<int>(given ? inter_op : most), given}};
}

// The cores of a GPU's host, which run what is placed there.
Status OpenHost(const MachineChoice& choice, OpenedMachine& opened) {
  RIDGE_ASSIGN_OR_RETURN(const Team team, TeamFor(choice));
  RIDGE_ASSIGN_OR_RETURN(opened.host, MakeBackend(choice, team.threads));
  opened.backend->SetHost(*opened.host);
  opened.machine.libraries.push_back(CpuLibrary());
  opened.machine.libraries.push_back("host " + CpuProfileId(team.threads));
  return Status();
}

// The kernels of a GPU's host run one after the other, as its own do.
bool IsForHost(const OptionInfo& option) { return option.key != "inter-op"; }

// Whether the device reads what the user gave.
Status CheckGiven(const MachineChoice& choice, bool is_gpu) {
  Status status;
  ForEachOption([&](const OptionInfo& option, auto) {
    const bool other = option.group == (is_gpu ? OptionGroup::kCpu : OptionGroup::kGpu);
    if (!other || !choice.given.contains(std::string(option.key))) return;
    if (is_gpu && choice.host_kernels && IsForHost(option)) return;
    if (status.ok()) status = OfAnotherDevice(option, choice.device);
  });
  return status;
}

Status LoadTimes(const MachineChoice& choice, Machine& machine) {
  if (choice.kernels != "tuned" || !choice.times || choice.backend != "cpu") return Status();
  RIDGE_ASSIGN_OR_RETURN(KernelTimes times,
                         LoadKernelTimes(machine.profile.id, LibrariesOf(machine)));
  machine.kernel_s = std::move(times.kernel_s);
  return Status();
}

}  // namespace

std::string LibrariesOf(const Machine& machine) {
  return machine.libraries.empty() ? CpuLibrary()
                                   : fmt::format("{}", fmt::join(machine.libraries, ", "));
}

MachineChoice ChoiceOf(const TrainFlags& flags) {
  return {.device = flags.options.device,
          .device_memory = flags.options.device_memory,
          .launch = flags.options.kernel_launch,
          .backend = flags.backend.value_or("cpu"),
          .threads = flags.options.threads,
          .conv = flags.Has("conv") ? flags.options.conv : "direct",
          .given = GivenKeys(flags)};
}

MachineChoice ChoiceOf(const TrainFlags& flags, const TrainOptions& options) {
  return {.device = options.device,
          .device_memory = options.device_memory,
          .launch = options.kernel_launch,
          .backend = flags.backend.value_or("cpu"),
          .threads = options.threads,
          .intra_op = options.intra_op,
          .inter_op = options.inter_op,
          .conv = options.conv,
          .kernels = options.kernels,
          .tf32 = options.precision == "tf32",
          .host_kernels = !options.place.empty(),
          .given = GivenKeys(flags)};
}

void OpenedMachine::PlanRanks(int64_t ranks) {
  machine.rank = 0;
  machine.ranks = static_cast<int>(ranks);
  if (hardware != nullptr) machine.group = DeviceGroup{hardware.get(), ranks};
}

Result<std::optional<int>> GpuOrdinal(const std::string& flag, const std::string& device) {
  constexpr std::string_view kGpu = "cuda:";
  if (device == "cpu") return std::optional<int>();
  if (device == "cuda") return std::optional<int>(0);
  int ordinal = -1;
  const char* const end = device.data() + device.size();
  const char* const number = device.starts_with(kGpu) ? device.data() + kGpu.size() : end;
  const auto [rest, error] = std::from_chars(number, end, ordinal);
  if (error == std::errc() && rest == end && ordinal >= 0) return std::optional<int>(ordinal);
  return InvalidArgument(fmt::format("{} is '{}'; it must be cpu or cuda[:N]", flag, device));
}

Result<OpenedMachine> OpenMachine(const MachineChoice& choice,
                                  const std::function<void(const std::string&)>& say) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<int> gpu, GpuOrdinal("--device", choice.device));
  RIDGE_RETURN_IF_ERROR(CheckGiven(choice, gpu.has_value()));
  if (gpu) {
    if (choice.backend != "cpu") {
      return InvalidArgument(
          fmt::format("--backend {} is of the CPU, and --device is '{}'. hint: --device cpu",
                      choice.backend, choice.device));
    }
    RIDGE_ASSIGN_OR_RETURN(const DeviceMemory most, ParseDeviceMemory(choice.device_memory));
    RIDGE_ASSIGN_OR_RETURN(
        OpenedMachine opened,
        OpenCudaMachine({.ordinal = *gpu,
                         .most = most,
                         .libraries = {.tf32 = choice.tf32, .all_kernels = TakesAllKernels(choice)},
                         .launch = choice.launch,
                         .counters = choice.counters},
                        say));
    RIDGE_RETURN_IF_ERROR(LoadTimes(choice, opened.machine));
    if (choice.host_kernels) RIDGE_RETURN_IF_ERROR(OpenHost(choice, opened));
    return opened;
  }
  RIDGE_ASSIGN_OR_RETURN(const Team team, TeamFor(choice));
  const int threads = team.threads;
  OpenedMachine opened;
  RIDGE_ASSIGN_OR_RETURN(
      opened.machine.profile,
      LoadOrMeasureProfile(CpuProfileId(threads), WallSeconds(), [&](bool again) {
        if (!again) {
          say("no profile of this machine yet: measuring a quick one (`ridge bench device` makes a "
              "better one)");
        }
        return MeasureInChild(threads);
      }));
  RIDGE_ASSIGN_OR_RETURN(opened.backend, MakeBackend(choice, threads));
  opened.machine.backend = opened.backend.get();
  opened.machine.inter_op = team.inter_op;
  if (threads == 1)  // else the backend's team has the streams' threads
    RIDGE_RETURN_IF_ERROR(cpu::MakeTeam(team.inter_op.streams));
  RIDGE_RETURN_IF_ERROR(LoadTimes(choice, opened.machine));
  return opened;
}

Result<OpenedMachine> OpenPlannedMachine(const Hardware& hardware,
                                         const std::string& given_precision,
                                         const std::string& software, bool needs_memory,
                                         AskConv ask_conv) {
  DeviceUse use;
  use.needs_memory = needs_memory;
  use.ask_conv = std::move(ask_conv);
  const std::string fastest = hardware.bf16_tflops ? "bf16" : "f32";
  const std::string& precision = given_precision == "auto" ? fastest : given_precision;
  use.operands = NamedOperands(precision);
  use.products = precision == "tf32" ? F32Products::kTf32 : F32Products::kExact;
  use.linear_fp8 = precision == "fp8";
  RIDGE_ASSIGN_OR_RETURN(use.software, FindSoftware(software, precision));
  if (software == kOwnSoftware) use.kernels = &cuda::KernelsOfAbsentGpus();
  RIDGE_ASSIGN_OR_RETURN(PlannedHardware facts, PlanHardware(hardware, use));
  OpenedMachine opened;
  opened.hardware = std::make_unique<Hardware>(hardware);
  opened.planned = std::make_unique<PlannedDevice>(hardware, use);
  opened.machine.software = use.software;
  opened.machine.peak_flops_per_s = facts.peak_flops_per_s;
  opened.machine.planned = opened.planned.get();
  opened.machine.profile = std::move(facts.profile);
  opened.machine.memory_bytes = facts.memory_bytes;
  opened.machine.host_link_bytes_per_s = facts.host_link_bytes_per_s;
  opened.machine.context_spread_bytes = facts.context_spread_bytes;
  return opened;
}

Result<OpenedMachine> OpenRecordedMachine(const std::string& path, const MachineChoice& choice) {
  constexpr int64_t kMostBytes = 64 << 20;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  RIDGE_ASSIGN_OR_RETURN(DeviceProfile profile, ProfileFromJson(text, path));
  if (profile.kernel_rates.empty() || profile.memory.empty()) {
    return Status(ErrorCode::kInvalidData,
                  path + ": has no rates of kernels. hint: ridge bench device --record FILE");
  }
  RIDGE_RETURN_IF_ERROR(CheckThreadLimit("its threads", profile.threads));
  OpenedMachine opened;
  opened.machine.known_from = "its record of " + profile.made_at;
  RIDGE_ASSIGN_OR_RETURN(opened.backend,
                         MakeRecordedBackend(profile, choice, opened.machine.known_from));
  opened.machine.planned = opened.backend.get();
  opened.machine.memory_bytes = profile.memory.back().capacity_bytes;
  opened.machine.peak_flops_per_s = profile.peak_flops_per_s["f32"];
  Software& software = opened.machine.software;
  software.id = software.name = kOwnSoftware;
  software.low = kRecordLow;
  software.high = kRecordHigh;
  software.evidence = "32 steps of 10 models on a machine and its record";
  opened.machine.profile = std::move(profile);
  return opened;
}

std::function<Result<MachinePeaks>(DType)> PeaksOf(const OpenedMachine& opened) {
  if (!opened.machine.in_host_memory()) {
    return [profile = opened.machine.profile](DType operands) {
      const auto peak = profile.peak_flops_per_s.find(DTypeName(operands));
      const double flops_per_s = peak == profile.peak_flops_per_s.end() ? 0 : peak->second;
      return Result<MachinePeaks>(MachinePeaks{flops_per_s, profile.memory.back().bytes_per_s});
    };
  }
  return [threads = opened.backend->threads()](DType operands) {
    return Result<MachinePeaks>(
        MachinePeaks{BestMatmulFlops(threads, operands), BestTriadBytesPerS(threads)});
  };
}

}  // namespace ridge::cli
