// `ridge bench device`: measures this machine for the planner and keeps the result.
#include <fmt/format.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/measure.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"
#include "ridge/runtime/profile_store.h"

namespace ridge::cli {
namespace {

struct BenchDeviceVerb {
  TrainFlags machine;
  OutputFlags output;
  bool json = false, quick = false;
};

std::string ProfileReport(const DeviceProfile& profile, const Terminal& terminal) {
  Table table({{profile.name}, {"", Align::kRight}, {"", Align::kRight}});
  for (const auto& [dtype, peak] : profile.peak_flops_per_s) {
    table.AddRow({"peak " + dtype, "", FormatRate(peak, "FLOP")});
  }
  for (const MemoryLevel& level : profile.memory) {
    table.AddRow(
        {level.level, FormatBytes(level.capacity_bytes), FormatRate(level.bytes_per_s, "B")});
  }
  table.AddRow({"start of a kernel", "", FormatSeconds(profile.launch_s)});
  table.AddRow({"program and libraries", FormatBytes(profile.runtime_bytes), ""});
  return table.ToText(terminal, /*indent=*/0);
}

Result<int> RunBenchDevice(const BenchDeviceVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(CheckDevice("--device", verb.machine.device.value_or("cpu")));
  const int threads = static_cast<int>(verb.machine.threads.value_or(AvailableThreads()));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                         MakeCpuBackend(threads, ConvKernels::kDirect));
  RIDGE_ASSIGN_OR_RETURN(const DeviceProfile profile, MeasureCpu(*backend, verb.quick));
  if (const Status saved = SaveProfile(profile); !saved.ok()) {
    PrintWarning(fmt::format("the profile can't be kept: {}", saved.message()));
  }
  if (verb.json) {
    PrintData(ProfileToJson(profile));
  } else {
    PrintData(ProfileReport(profile, terminal));
    PrintData(fmt::format("kept in {}\n", ProfilePath(profile.id)));
  }
  return kExitOk;
}

}  // namespace

VerbBody AddBenchDevice(CLI::App& app) {
  auto verb = std::make_shared<BenchDeviceVerb>();
  AddText(app, "--device", verb->machine.device, "cpu|cuda", "What to measure (cpu)");
  AddInteger(app, "--threads", verb->machine.threads, {.minimum = 1, .maximum = 1024}, "N",
             "Threads of the kernels (all cores that may be used)");
  AddSwitch(app, "--quick", verb->quick, "A rougher profile in less time");
  AddSwitch(app, "--json", verb->json, "For machines")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunBenchDevice(*verb); };
}

}  // namespace ridge::cli
