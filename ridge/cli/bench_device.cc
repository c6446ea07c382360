// `ridge bench device`: measures this machine for the planner and stores the result.
#include <fmt/format.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/measure.h"
#include "ridge/cli/cuda_machine.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/tune.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/measure/device_rates.h"
#include "ridge/measure/kernel_rates.h"
#include "ridge/report/table.h"
#include "ridge/runtime/profile_store.h"

namespace ridge::cli {
namespace {

struct BenchDeviceVerb {
  TrainFlags machine;
  OutputFlags output;
  std::vector<std::string> models;  // with --tune
  std::optional<std::string> record;
  bool json = false, quick = false, tune = false, dry_run = false;
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
  if (profile.host_link_bytes_per_s > 0)
    table.AddRow({"link to the host", "", FormatRate(profile.host_link_bytes_per_s, "B")});
  if (!profile.kernel_rates.empty())
    table.AddRow({"kernels timed in training steps", "",
                  FormatInteger(static_cast<int64_t>(profile.kernel_rates.size()))});
  table.AddRow({profile.steadiness.known ? "program and libraries" : "context and libraries",
                FormatBytes(profile.runtime_bytes), ""});
  std::string text = table.ToText(terminal, /*indent=*/0);
  if (!profile.steadiness.known) return text;  // a GPU
  text += SteadinessText(profile.steadiness);
  if (!IsSteady(profile.steadiness))
    text += ": times are by processor seconds of one thread, and are measured again";
  return text + "\n";
}

// With the kernels that trainings take without further options.
Status AddKernelRates(const std::function<void(const std::string&)>& say, DeviceProfile& profile) {
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                         MakeCpuBackend(profile.threads, ConvKernels::kAuto));
  const Machine machine = {.backend = backend.get(), .profile = profile};
  RIDGE_ASSIGN_OR_RETURN(profile.kernel_rates, MeasureKernelRates(machine, say));
  return Status();
}

// A record is planned with: it needs the rates of kernels, and an ending that tells what it is.
Status CheckRecord(const BenchDeviceVerb& verb) {
  if (!verb.record) return Status();
  if (verb.quick)
    return InvalidArgument(
        "--record with --quick: a record needs the rates of kernels. hint: leave --quick out");
  if (!verb.record->ends_with(".json"))
    return InvalidArgument(fmt::format("--record is '{}'; it must end in .json", *verb.record));
  return Status();
}

// Keeps and prints what was measured.
Result<int> ShowProfile(const BenchDeviceVerb& verb, const Terminal& terminal,
                        const DeviceProfile& profile) {
  if (const Status saved = verb.dry_run ? Status() : SaveProfile(profile); !saved.ok()) {
    PrintWarning(fmt::format("the profile can't be kept: {}", saved.message()));
  }
  if (verb.record) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.record, ProfileToJson(profile)));
  if (verb.json) {
    PrintData(ProfileToJson(profile));
  } else {
    PrintData(ProfileReport(profile, terminal));
    if (!verb.dry_run) PrintData(fmt::format("kept in {}\n", ProfilePath(profile.id)));
  }
  return kExitOk;
}

// Products of f32 that are rounded to TF32, where they are faster than exact ones: else the GPU, or
// the library that is here, has none.
Status AddTf32(const OpenedMachine& opened, const DeviceRatesOptions& options,
               DeviceProfile& profile) {
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> rounds, MakeTf32Backend(opened));
  RIDGE_ASSIGN_OR_RETURN(const double rate, MeasureProducts(*rounds, DType::kF32, options));
  constexpr double kFaster = 1.2;
  if (rate > kFaster * profile.peak_flops_per_s["f32"]) profile.peak_flops_per_s[kTf32Peak] = rate;
  return Status();
}

Result<int> RunBenchGpu(const BenchDeviceVerb& verb, const Terminal& terminal) {
  if (verb.record) {
    return InvalidArgument(
        "--record is of the CPU; the catalog plans for a GPU elsewhere. hint: ridge devices");
  }
  RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened,
                         OpenMachine(ChoiceOf(verb.machine), SayUnless(verb.output.quiet)));
  DeviceProfile& profile = opened.machine.profile;
  profile.memory.back().capacity_bytes = opened.machine.memory_bytes;
  DeviceRatesOptions options;
  if (verb.quick) options.budget_s /= 10;
  RIDGE_RETURN_IF_ERROR(MeasureDeviceRates(*opened.backend, options, profile));
  RIDGE_RETURN_IF_ERROR(AddTf32(opened, options, profile));
  profile.quick = verb.quick;
  profile.made_at = UtcText(WallSeconds());
  return ShowProfile(verb, terminal, profile);
}

Result<int> RunBenchDevice(const BenchDeviceVerb& verb) {
  if (verb.tune) return RunTune({verb.models, verb.machine, verb.output, verb.json});
  if (!verb.models.empty()) {
    return InvalidArgument(
        fmt::format("bench device: '{}' is one argument too many. hint: --tune {}",
                    verb.models.front(), verb.models.front()));
  }
  RIDGE_RETURN_IF_ERROR(CheckRecord(verb));
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const std::optional<int> gpu,
                         GpuOrdinal("--device", verb.machine.options.device));
  if (gpu) return RunBenchGpu(verb, terminal);
  const int64_t asked = verb.machine.options.threads;
  const int threads = static_cast<int>(asked > 0 ? asked : AvailableThreads());
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                         MakeCpuBackend(threads, ConvKernels::kDirect));
  RIDGE_ASSIGN_OR_RETURN(DeviceProfile profile, MeasureCpu(*backend, verb.quick));
  if (!verb.quick) RIDGE_RETURN_IF_ERROR(AddKernelRates(SayUnless(verb.output.quiet), profile));
  return ShowProfile(verb, terminal, profile);
}

void AddTuneFlags(CLI::App& app, BenchDeviceVerb& verb) {
  const std::string group = "With --tune";
  app.add_option(
         "MODEL", verb.models,
         "With --tune: built-in models, ONNX files or graphs in text form (the workloads of "
         "`ridge bench suite`)")
      ->type_name("MODEL")
      ->expected(0, 1000);
  AddSwitch(app, "--tune", verb.tune,
            "Times the kernels that training steps of the models could take, for --kernels tuned")
      ->group(group);
  AddOption(app, verb.machine, "batch")->group(group);
  AddOption(app, verb.machine, "precision", "Type of the operands of products (f32)")->group(group);
  AddGroup(app, verb.machine, OptionGroup::kModel);
}

}  // namespace

VerbBody AddBenchDevice(CLI::App& app) {
  auto verb = std::make_shared<BenchDeviceVerb>();
  AddOption(app, verb->machine, "device", "What to measure (cpu)");
  AddOption(app, verb->machine, "threads");
  AddText(app, "--record", verb->record, "FILE",
          "Writes the profile to a file that plans for this machine elsewhere: ridge plan MODEL "
          "--on FILE");
  AddSwitch(app, "--quick", verb->quick, "A rougher profile in less time");
  AddSwitch(app, "--dry-run", verb->dry_run, "Measures without storing the result");
  AddTuneFlags(app, *verb);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunBenchDevice(*verb); };
}

}  // namespace ridge::cli
