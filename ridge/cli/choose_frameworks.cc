// `ridge choose --frameworks`: which programs train the model on a device: releases that run there,
// memory, time, the host's part, and what their installation downloads.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/cli/choose_verb.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/doctor/framework_support.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/report/frameworks_report.h"

namespace ridge::cli {
namespace {

struct Program {
  const char* id;
  const char* planned_as;  // at its fastest: FindSoftware()
  const char* name;
  const char* no_memory;   // why nothing is known of its memory
  const char* no_seconds;  // and of its seconds
};

constexpr char kNoTraining[] = "no published training of it is known (bench/published/cases.csv)";
constexpr Program kPrograms[] = {
    {kOwnSoftware, kOwnSoftware, "ridge", "", ""},
    {"torch", "torch-channels-last", "PyTorch", "", ""},
    {"tf", "tf", "TensorFlow",
     "it takes all of the memory at its start unless it is told not to (tensorflow.org, "
     "set_memory_growth), so that published figures say nothing of the need",
     ""},
    {"jax", "", "JAX",
     "it takes 75 % of the memory at its start (docs.jax.dev, GPU memory allocation), so that "
     "published figures say nothing of the need",
     kNoTraining},
    {"paddle", "", "Paddle", kNoTraining, kNoTraining},
};

FrameworkCell Unknown(const std::string& why) { return {"", {}, Evidence::kNotKnown, why}; }

FrameworkCell Known(const std::string& text, const std::string& source) {
  return {text, {}, Evidence::kKnown, source};
}

// ---- versions

// ">=3.10,<=3.15 (3.15t experimental)" as "3.10-3.15".
std::string ShortRange(const std::string& range) {
  std::string text = range.substr(0, range.find(" ("));
  if (!text.starts_with(">=")) return text;
  text = text.substr(2);
  const size_t comma = text.find(",<=");
  return comma == std::string::npos ? text + "+" : text.replace(comma, 3, "-");
}

// "2.21.0" as "2.21", and "3.0" as it is.
std::string ShortVersion(const std::string& version) {
  const bool is_patch = std::count(version.begin(), version.end(), '.') == 2;
  return is_patch && version.ends_with(".0") ? version.substr(0, version.size() - 2) : version;
}

// Listed, or by what its compiler knows.
FrameworkCell ReleaseCell(const FrameworkBuild& build, const std::string& text) {
  const std::string& source = build.code->source;
  if (!build.is_listed)
    return {
        text,
        {},
        Evidence::kEstimated,
        fmt::format("{} knows the architecture ({}); what the release has code for is not known",
                    build.toolkit, source)};
  return {text,
          {},
          Evidence::kKnown,
          build.is_compiled_there ? source + "; PTX, which is compiled when it starts" : source};
}

FrameworkCell LeastCell(const FrameworkSupport& support) {
  if (!support.least) return Unknown("the table of versions begins with " + support.begins);
  FrameworkCell cell = ReleaseCell(*support.least, support.least->version);
  // Of older ones nothing says whether they have PTX.
  if (support.least->is_compiled_there) cell.evidence = Evidence::kEstimated;
  return cell;
}

void TakeRelease(const FrameworkSupport& support, FrameworkRow& row) {
  const FrameworkBuild& newest = *support.newest;
  row.newest = ReleaseCell(newest, ShortVersion(newest.version) + ", " + newest.toolkit);
  row.least = LeastCell(support);
  row.driver = newest.driver.empty() ? Unknown("the table of versions has none")
                                     : Known(newest.driver, newest.needed->source);
  row.python = newest.python.empty() ? Unknown("the table of versions has none")
                                     : Known(ShortRange(newest.python), newest.row->source);
}

void TakeSupport(const Program& program, const Hardware& hardware, FrameworkRow& row) {
  const FrameworkSupport support = SupportOf(program.id, hardware.compute_capability);
  if (support.newest) return TakeRelease(support, row);
  const std::string why = hardware.compute_capability.empty()
                              ? "the table of versions has no release for " + hardware.architecture
                              : "no release in the table of versions is known to have code for " +
                                    hardware.compute_capability;
  row.least = row.newest = row.driver = row.python = Unknown(why);
}

// Of NVIDIA's GPUs, whose kernels it is compiled for (docs/gpus.md).
constexpr double kLeastCapability = 8.0;
constexpr char kLeastDriver[] = "580";

void TakeOwnSupport(const Hardware& hardware, FrameworkRow& row) {
  row.python = Known("none", "one native program (README.md)");
  if (hardware.architecture.starts_with("x86-64")) {
    row.least = row.newest = Known("0.1.0", "README.md");
    row.driver = Known("none", "README.md");
  } else if (ComputeCapability(hardware) >= kLeastCapability) {
    row.least = row.newest = Known("0.1.0", "docs/gpus.md");
    row.driver = Known(kLeastDriver, "docs/gpus.md");
  } else {
    const std::string why =
        "ridge runs on x86-64 CPUs and on GPUs of NVIDIA of compute capability 8.0 or newer "
        "(docs/gpus.md), so this device is planned for, not used";
    row.least = row.newest = Known("planned", why);
    row.driver = Unknown(why);
  }
}

// ---- installation

// "cuda13" where the newest release that runs there is of CUDA 13.
std::string InstallDevice(const Program& program, const Hardware& hardware) {
  if (IsCpu(hardware) || std::string(program.id) == kOwnSoftware) return "cpu";
  const FrameworkSupport support = SupportOf(program.id, hardware.compute_capability);
  if (!support.newest || !support.newest->toolkit.starts_with("CUDA ")) return "";
  return "cuda" + Version(support.newest->toolkit.substr(5)).Text(1);
}

void TakeInstall(const Program& program, const Hardware& hardware, FrameworkRow& row) {
  const Install* install = FindInstall(program.id, InstallDevice(program, hardware));
  if (install == nullptr) {
    row.download = row.packages = Unknown("for this device it is not in PyPI's index");
    return;
  }
  const Evidence evidence =
      install->confidence == "datasheet" ? Evidence::kKnown : Evidence::kEstimated;
  const std::string source = fmt::format("{} {} on {}, {}", install->requirement, install->version,
                                         install->date, install->source);
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  row.download = {FormatBytes(install->bytes), number(install->bytes), evidence, source};
  row.packages = {FormatInteger(install->packages), number(install->packages), evidence, source};
}

// ---- the plan

struct PlannedProgram {
  OpenedMachine opened;
  PlannedRun run;
};

Result<PlannedProgram> PlanProgram(const ChooseVerb& verb, const Hardware& hardware,
                                   const std::string& program) {
  PlannedProgram planned;
  TrainOptions options = verb.train.options;
  options.device = hardware.id;
  options.precision = PrecisionFor(verb, hardware);
  if (program != kOwnSoftware) LeaveAsWritten(options);
  RIDGE_ASSIGN_OR_RETURN(planned.opened, OpenPlannedMachine(hardware, options.precision, program));
  RIDGE_ASSIGN_OR_RETURN(planned.run, PlanRun(options, planned.opened.machine));
  return planned;
}

FrameworkCell MemoryCell(const PlannedJob& job, const std::string& source) {
  const int64_t bytes = job.memory.peak_bytes;
  // The upper end of the range must fit.
  const std::string text =
      job.fits() ? FormatBytes(bytes)
                 : FormatBytes(job.memory.needed_bytes()) + " > " + FormatBytes(job.limit_bytes);
  return {text, static_cast<double>(bytes), Evidence::kEstimated,
          fmt::format("{}; {} the device's {}", source, job.fits() ? "fits" : "does not fit",
                      FormatBytes(job.limit_bytes))};
}

double Updates(const ChooseVerb& verb) {
  if (!verb.data_size) return 1;
  const TrainOptions& options = verb.train.options;
  const int64_t epoch = CeilDiv(*verb.data_size, options.batch * options.accumulate);
  return static_cast<double>(epoch * options.epochs.value_or(1));
}

FrameworkCell SecondsCell(const PlannedJob& job, double updates) {
  return {FormatSeconds(updates * job.step_s), updates * job.step_s, Evidence::kEstimated,
          fmt::format("{} to {}: roofline x {:g}, {}", FormatSeconds(updates * job.range->low_s),
                      FormatSeconds(updates * job.range->high_s), job.range->scale,
                      job.range->evidence)};
}

// Kernels of an update that are launched one by one.
int64_t Launches(const PlannedJob& job) {
  int64_t launches = 0;
  for (const UpdatePart& part : UpdateParts(job.program, job.options.accumulate)) {
    for (size_t n = 0; n < part.step->nodes.size(); ++n) {
      const PlannedNode& node = part.step->nodes[n];
      const int64_t kernels = node.def == nullptr ? 1 : EagerKernels(*node.def, node.call);
      launches += part.runs * RunsOf(*part.step, n) * kernels;
    }
  }
  return launches;
}

FrameworkCell HostCell(const PlannedJob& job) {
  const int64_t launches = Launches(job);
  const double seconds = static_cast<double>(launches) * kEagerLaunchSeconds;
  const double share = std::min(1.0, seconds / job.step_s);
  return {
      fmt::format("{:.0f} %", 100 * share), share, Evidence::kEstimated,
      fmt::format("{} launches of {} us take {} of a step of {}; what the program does for each "
                  "beside is not known",
                  FormatInteger(launches), kEagerLaunchSeconds * 1e6, FormatSeconds(seconds),
                  FormatSeconds(job.step_s))};
}

void TakeOwnPlan(const ChooseVerb& verb, const Hardware& hardware, const PlannedJob& job,
                 FrameworkRow& row) {
  row.memory = MemoryCell(job, "the plan");
  row.seconds = SecondsCell(job, Updates(verb));
  row.host_share = IsCpu(hardware)
                       ? Known("100 %", "the device is the host")
                       : Unknown("no step was run there; the plan has the kernels in one graph");
}

void TakePlan(const ChooseVerb& verb, const Hardware& hardware, const Program& program,
              FrameworkRow& row) {
  const auto take_unknown = [&](const std::string& memory, const std::string& seconds) {
    row.memory = Unknown(memory);
    row.seconds = row.host_share = Unknown(seconds);
  };
  if (*program.no_seconds != '\0') return take_unknown(program.no_memory, program.no_seconds);
  if (IsCpu(hardware)) {
    constexpr char kGpus[] = "the published trainings are of GPUs";
    return take_unknown(kGpus, kGpus);
  }
  const Result<PlannedProgram> planned = PlanProgram(verb, hardware, program.planned_as);
  if (!planned.ok()) return take_unknown(planned.status().message(), planned.status().message());
  const PlannedJob& job = planned->run.job;
  row.memory =
      !job.memory.is_placed
          ? MemoryCell(job, fmt::format("the plan, activations x {:g}, {}", job.memory.range->scale,
                                        job.memory.range->evidence))
          : Unknown(program.no_memory);
  row.seconds = SecondsCell(job, Updates(verb));
  row.host_share = HostCell(job);
}

Result<DeviceFrameworks> FrameworksOn(const ChooseVerb& verb, const Hardware& hardware) {
  DeviceFrameworks device = {hardware.id, PrecisionFor(verb, hardware), {}};
  RIDGE_ASSIGN_OR_RETURN(const PlannedProgram own, PlanProgram(verb, hardware, kOwnSoftware));
  for (const Program& program : kPrograms) {
    FrameworkRow row;
    row.program = program.name;
    if (std::string(program.id) == kOwnSoftware) {
      TakeOwnSupport(hardware, row);
      TakeOwnPlan(verb, hardware, own.run.job, row);
    } else {
      TakeSupport(program, hardware, row);
      TakePlan(verb, hardware, program, row);
    }
    TakeInstall(program, hardware, row);
    device.rows.push_back(std::move(row));
  }
  return device;
}

// It prices nothing and has no offers.
Status CheckAlone(const ChooseVerb& verb) {
  for (const auto& [flag, given] : {std::pair("--deadline", verb.deadline.has_value()),
                                    {"--budget", verb.budget.has_value()},
                                    {"--power", verb.power.has_value()},
                                    {"--electricity", verb.electricity.has_value()},
                                    {"--own", verb.own.has_value()},
                                    {"--buy", verb.buy.has_value()},
                                    {"--order", verb.order.has_value()},
                                    {"--years", verb.years.has_value()},
                                    {"--use", verb.use.has_value()},
                                    {"--pue", verb.pue.has_value()},
                                    {"--host-price", verb.host_price.has_value()},
                                    {"--why", verb.why.has_value()},
                                    {"--html", verb.html.has_value()}}) {
    if (given)
      return InvalidArgument(fmt::format(
          "--frameworks compares programs on a device, it has no offers; leave out {}", flag));
  }
  if (verb.among) return Status();
  return InvalidArgument("--frameworks needs --among: the device, or several. hint: ridge devices");
}

}  // namespace

Result<int> RunFrameworks(const ChooseVerb& verb, const Terminal& terminal) {
  RIDGE_RETURN_IF_ERROR(CheckAlone(verb));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Hardware> devices, DevicesOf(verb));
  FrameworksTable table = {
      .title = TitleOf(verb), .is_step = !verb.data_size, .devices = {}, .all = verb.all};
  for (const Hardware& hardware : devices) {
    RIDGE_ASSIGN_OR_RETURN(DeviceFrameworks device, FrameworksOn(verb, hardware));
    table.devices.push_back(std::move(device));
  }
  if (verb.json) {
    PrintData(FrameworksJson(table) + "\n");
  } else {
    PrintData(verb.markdown ? FrameworksMarkdown(table) : FrameworksReport(table, terminal));
  }
  return kExitOk;
}

}  // namespace ridge::cli
