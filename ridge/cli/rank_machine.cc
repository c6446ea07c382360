#include "ridge/cli/rank_machine.h"

#include "ridge/cli/output.h"
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

Result<OpenedMachine> OpenRank(MachineChoice choice, const std::string& overlap,
                               MpiCommunicator& ranks, bool quiet) {
  if (choice.threads == 0) {
    RIDGE_ASSIGN_OR_RETURN(choice.threads, ThreadsOfRank(ranks));
  }
  const bool leads = ranks.rank() == 0;
  if (!leads) RIDGE_RETURN_IF_ERROR(Barrier(ranks));
  RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened, OpenMachine(choice, SayUnless(quiet || !leads)));
  if (leads) RIDGE_RETURN_IF_ERROR(Barrier(ranks));
  opened.machine.Join(ranks);
  opened.machine.overlaps_exchange = overlap == "on";
  RIDGE_ASSIGN_OR_RETURN(
      opened.machine.sums,
      TakeSumTimes(ranks, opened.machine.profile.id, *opened.backend, SayUnless(quiet || !leads)));
  return opened;
}

}  // namespace ridge::cli
