// Ranks: a verb that runs on several devices, each in a process of its own.
//
// A verb calls JoinRanks once its options are known to be right, and before it does anything else.
#pragma once
#include <memory>
#include <string>

#include "ridge/core/status.h"
#include "ridge/dist/mpi_communicator.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

inline constexpr double kLateAfter_s = 5;

struct RanksChoice {
  int64_t devices = 1;  // --devices
  bool given = false;   // by the user of this process
  // Seconds that a rank may keep the others waiting without reason; 0: for ever.
  double late_after_s = kLateAfter_s;
  // Where RIDGE_TEST_COMPUTE=virtual there may be many more ranks than cores, and they share them.
  bool may_be_virtual = false;
};

// The ranks that this process is one of; null: it is alone.  Started by nobody and with several
// devices the process becomes mpirun, which starts this command on each of them, and the function
// does not return.  Fails with kInvalidArgument when --devices is not the launcher's number, and as
// DetectLauncher, MpiCommunicator::Join and BecomeRanks do.
Result<std::unique_ptr<MpiCommunicator>> JoinRanks(const RanksChoice& choice);

// How many devices there will be: those of the launcher that started this process, if it says, else
// those of the options.  Fails as DetectLauncher and DevicesOf do.
Result<int64_t> StartedDevices(const TrainOptions& options);

// Fails with kInvalidArgument when a launcher started several processes: `what` starts its own.
Status CheckNoLauncher(const std::string& what);

// The exit code of an error that all ranks have alike: the first says it.
int FailAlike(const Communicator& ranks, const Status& error);

// The exit code of a verb's work.  A rank that fails alone, or that waits for a late one, says why
// and ends the others with it: they would wait for ever.
int EndRanks(MpiCommunicator& ranks, const Result<int>& work);

}  // namespace ridge::cli
