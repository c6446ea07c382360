#include "ridge/cli/rank_machine.h"

#include "ridge/cli/output.h"
#include "ridge/cli/rank_gpus.h"
#include "ridge/cli/rank_times.h"
#include "ridge/core/version.h"
#include "ridge/dist/agreement.h"
#include "ridge/dist/core_share.h"
#include "ridge/dist/gather.h"

namespace ridge::cli {

Status CheckAlike(Communicator& ranks, TrainOptions options) {
  options.out.clear();  // the first rank names a new one
  Agreement agreement(&ranks);
  RIDGE_RETURN_IF_ERROR(agreement.Same("another version of ridge", kRidgeVersion, kStartAlike));
  return agreement.Same("other options", OptionsToJson(options), kStartAlike);
}

namespace {

// The first rank's: plans choose by it, and a rank may have measured the machine at a busier time.
// Machines of another type are refused later, with their name.
Status TakeProfileOfFirst(Communicator& ranks, DeviceProfile& profile) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, TextOfFirst(ranks, ProfileToJson(profile)));
  RIDGE_ASSIGN_OR_RETURN(DeviceProfile first, ProfileFromJson(text, "the profile of rank 0"));
  if (first.id == profile.id) profile = std::move(first);
  return Status();
}

// Inside one machine, and where all cores compute, an exchange beside the step takes its cores away
// (docs/design/0039-tree-sums.md); elsewhere the plan decides.
Result<GradientOverlap> OverlapOf(const TrainOptions& options, Communicator& ranks,
                                  const OpenedMachine& opened) {
  if (options.overlap != "auto")
    return options.overlap == "on" ? GradientOverlap::kOn : GradientOverlap::kOff;
  const bool in_line = !options.mesh.empty() || !opened.machine.in_host_memory();
  if (in_line || opened.machine.sums.machines == 1) return GradientOverlap::kOff;
  RIDGE_ASSIGN_OR_RETURN(const bool spare, AllHaveACoreToSpare(ranks, opened.backend->threads()));
  return spare ? GradientOverlap::kPlanned : GradientOverlap::kOff;
}

}  // namespace

Result<OpenedMachine> OpenRank(MachineChoice choice, const TrainOptions& options,
                               MpiCommunicator& ranks, bool quiet) {
  if (choice.threads == 0) {
    RIDGE_ASSIGN_OR_RETURN(choice.threads, ThreadsOfRank(ranks));
  }
  if (choice.device == "cuda") {
    RIDGE_ASSIGN_OR_RETURN(choice.device, GpuOfRank(ranks, ListedDevices(options.devices)));
  }
  const bool leads = ranks.rank() == 0;
  if (!leads) RIDGE_RETURN_IF_ERROR(Barrier(ranks));
  RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened, OpenMachine(choice, SayUnless(quiet || !leads)));
  if (leads) RIDGE_RETURN_IF_ERROR(Barrier(ranks));
  opened.machine.Join(ranks);
  if (opened.device != nullptr)
    RIDGE_RETURN_IF_ERROR(JoinGpus(ranks, SayUnless(quiet || !leads), opened));
  RIDGE_RETURN_IF_ERROR(TakeProfileOfFirst(ranks, opened.machine.profile));
  RIDGE_ASSIGN_OR_RETURN(
      opened.machine.sums,
      TakeSumTimes(ranks, opened.machine.profile.id, *opened.backend, SayUnless(quiet || !leads)));
  RIDGE_ASSIGN_OR_RETURN(opened.machine.overlap, OverlapOf(options, ranks, opened));
  return opened;
}

}  // namespace ridge::cli
