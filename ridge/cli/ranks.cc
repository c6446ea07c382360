#include "ridge/cli/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/output.h"
#include "ridge/dist/launcher.h"
#include "ridge/dist/mpirun.h"
#include "ridge/runtime/virtual_compute.h"

namespace ridge::cli {
namespace {

const char* Variable(const char* name) { return std::getenv(name); }

Status CheckDevices(const RanksChoice& choice, const std::string& launcher, int64_t ranks) {
  if (!choice.given || choice.devices == ranks) return Status();
  return InvalidArgument(
      fmt::format("--devices is {}; {} started {} ranks. hint: leave --devices out, or give both "
                  "the same number",
                  choice.devices, launcher, ranks));
}

}  // namespace

Result<std::unique_ptr<MpiCommunicator>> JoinRanks(const RanksChoice& choice) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<Launcher> launcher, DetectLauncher(Variable));
  if (!launcher && choice.devices > 1) return BecomeRanks(choice.devices);
  if (!launcher) return std::unique_ptr<MpiCommunicator>();
  if (launcher->size > 0)
    RIDGE_RETURN_IF_ERROR(CheckDevices(choice, launcher->name, launcher->size));
  if (launcher->size == 1) return std::unique_ptr<MpiCommunicator>();
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<MpiCommunicator> ranks, MpiCommunicator::Join(*launcher));
  RIDGE_RETURN_IF_ERROR(CheckDevices(choice, launcher->name, ranks->size()));
  if (choice.may_be_virtual) {
    RIDGE_ASSIGN_OR_RETURN(const bool is_virtual, VirtualCompute::Asked());
    if (is_virtual) ranks->ShareCores();
  }
  if (choice.late_after_s > 0)
    RIDGE_RETURN_IF_ERROR(ranks->Watch(choice.late_after_s, PrintWarning));
  return ranks;
}

Result<int64_t> StartedDevices(const TrainOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<Launcher> launcher, DetectLauncher(Variable));
  if (launcher && launcher->size > 0) return launcher->size;
  return DevicesOf(options);
}

Status CheckNoLauncher(const std::string& what) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<Launcher> launcher, DetectLauncher(Variable));
  if (!launcher || launcher->size == 1) return Status();
  return InvalidArgument(fmt::format(
      "{} starts its runs itself; {} started {} ranks. hint: {} without it, and --devices", what,
      launcher->name, launcher->size, what));
}

int FailAlike(const Communicator& ranks, const Status& error) {
  if (ranks.rank() == 0) PrintError(error);
  return ExitCodeFor(error.code());
}

int EndRanks(MpiCommunicator& ranks, const Result<int>& work) {
  if (work.ok()) return *work;
  PrintError(work.status());
  // A launcher may drop what a rank said right before it aborts.
  std::fflush(stderr);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ranks.Abort(ranks.late() ? kExitLateRank : ExitCodeFor(work.status().code()));
}

}  // namespace ridge::cli
