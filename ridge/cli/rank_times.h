// How long sums over the ranks of a job take: stored beside the machine's profile, or measured.
#pragma once
#include <functional>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/dist/mpi_communicator.h"
#include "ridge/plan/cost/sum_times.h"

namespace ridge::cli {

// Each rank on its own cores, where they take all cores of a machine together; whether it has them.
// For measuring: the system places two ranks on one core at times, and then each exchange costs two
// switches.  Fails as Exchange does.
Result<bool> TakeCores(Communicator& ranks, Backend& backend);

// Whose times they are, without the times.  `device`: DeviceProfile::id.
Result<SumTimes> SumTimesKey(MpiCommunicator& ranks, const std::string& device);

// The times of this job's ranks, the same at all of them: those that the first one has stored, else
// measured by all, after a notice to `say`, and stored by the first.  Fails as TimeSums does.
Result<SumTimes> TakeSumTimes(MpiCommunicator& ranks, const std::string& device, Backend& backend,
                              const std::function<void(const std::string&)>& say);

// The times of so many ranks like `backend` on this machine, which are not started: stored ones,
// else, of CPUs, those that a child measures.  Fails with kFailed where it cannot, such as without
// an MPI, and with kUnavailable for GPUs.
Result<SumTimes> PlannedSumTimes(int64_t ranks, const std::string& device, Backend& backend,
                                 const std::function<void(const std::string&)>& say);

}  // namespace ridge::cli
