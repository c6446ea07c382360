#include "ridge/cli/plan_verb.h"

#include <fmt/format.h>

#include "ridge/cli/cudnn_asker.h"
#include "ridge/cli/output.h"
#include "ridge/cli/rank_times.h"
#include "ridge/core/threads.h"

namespace ridge::cli {
namespace {

// This machine as the first of so many ranks, which share its cores.
Result<OpenedMachine> OpenHere(const PlanVerb& verb, const TrainOptions& options, int64_t devices) {
  const auto say = SayUnless(verb.output.quiet);
  MachineChoice choice = ChoiceOf(verb.train, options);
  if (devices > 1 && choice.threads == 0)
    choice.threads = std::max<int64_t>(1, AvailableThreads() / devices);
  RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened, OpenMachine(choice, say));
  if (devices == 1) return opened;
  opened.PlanRanks(devices);
  Result<SumTimes> sums = PlannedSumTimes(devices, opened.machine.profile.id, *opened.backend, say);
  if (sums.ok()) {
    opened.machine.sums = std::move(*sums);
  } else {
    PrintWarning("the sums over the devices were not measured: " + sums.status().message());
  }
  return opened;
}

}  // namespace

bool IsRecord(const std::string& device) { return device.ends_with(".json"); }

Result<OpenedMachine> OpenFor(const PlanVerb& verb, const TrainOptions& options, int64_t devices) {
  if (verb.on && IsRecord(options.device) && !verb.foreign) {
    if (options.precision == "fp8") {
      return InvalidArgument(fmt::format(
          "--precision fp8: {} is the record of a CPU, which has no products of 8 bits to train "
          "with. hint: --precision bf16",
          options.device));
    }
    RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened,
                           OpenRecordedMachine(options.device, ChoiceOf(verb.train, options)));
    if (devices > 1) opened.PlanRanks(devices);
    return opened;
  }
  if (verb.on && !IsRecord(options.device) && options.device != "cpu") {
    RIDGE_ASSIGN_OR_RETURN(const Hardware hardware, FindHardware(options.device));
    AskConv ask_conv;
    if (!verb.foreign &&
        ComputeCapability(hardware) > 0)  // others take scales of what is on record
      ask_conv = AskCudnn(hardware.id, SayUnless(verb.output.quiet));
    RIDGE_ASSIGN_OR_RETURN(
        OpenedMachine opened,
        OpenPlannedMachine(hardware, options.precision, verb.foreign.value_or(kOwnSoftware),
                           /*needs_memory=*/false, std::move(ask_conv)));
    if (devices > 1) opened.PlanRanks(devices);
    return opened;
  }
  if (verb.foreign) {
    return InvalidArgument(
        "--foreign: published trainings are of the devices of `ridge devices`, not of CPUs. hint: "
        "--on "
        "a100-sxm4-40g");
  }
  return OpenHere(verb, options, devices);
}

Result<DevicePlan> PlanOn(const std::string& device, const PlanVerb& verb, int64_t devices,
                          int64_t batch) {
  DevicePlan plan;
  TrainOptions options = verb.train.options;
  options.device = device;
  options.batch = batch;
  if (verb.foreign) LeaveAsWritten(options);
  if (verb.why == kWhyDevices) options.shares = TrainOptions().shares;  // of other numbers
  RIDGE_RETURN_IF_ERROR(CheckShares(options, devices));
  RIDGE_RETURN_IF_ERROR(CheckModel(options));
  RIDGE_ASSIGN_OR_RETURN(plan.opened, OpenFor(verb, options, devices));
  RIDGE_ASSIGN_OR_RETURN(plan.run, PlanRun(options, plan.opened.machine));
  if (plan.run.data) {
    for (const std::string& note : plan.run.data->notes) PrintWarning(note);
  }
  return plan;
}

PlanSummary Summary(const DevicePlan& plan) {
  PlanSummary summary = SummarizeJob(plan.run.job, plan.run.job.program);
  const Machine& machine = plan.opened.machine;
  if (!machine.is_here() && !machine.profile.kernel_rates.empty())
    summary.rates = RateSourcesOf(plan.run.job.program, machine.profile.kernel_rates);
  return summary;
}

PlanSummary SummaryByHistory(const DevicePlan& plan, const PlanVerb& verb) {
  PlanSummary summary = Summary(plan);
  const bool is_this_machine = plan.run.job.options.device == "cpu";
  if (is_this_machine && WantsReceipts(verb.output))
    summary.expected = ExpectedStepOf(plan.run.job, plan.opened.machine, summary);
  return summary;
}

}  // namespace ridge::cli
