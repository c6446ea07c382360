// The GPUs of a job's ranks: which one is whose, and how their memories exchange.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/cli/machine.h"
#include "ridge/dist/mpi_communicator.h"

namespace ridge::cli {

// "cuda:N" of this rank: that of `listed`, by rank, where it has one for each, else the N-th rank
// of a machine has its N-th GPU, or its only one.  Called by all ranks.  Fails as Exchange does,
// and with kDevice where there is no driver.
Result<std::string> GpuOfRank(Communicator& ranks, const std::vector<int64_t>& listed);

// Lets the ranks exchange the memory of their GPUs, by NCCL where all of them have it, else through
// the hosts' memory; `say` is told which.  What NCCL takes of the GPU counts as the runtime of
// every plan.  Called by all ranks.  Fails with kDevice: two ranks have one GPU, or NCCL fails.
Status JoinGpus(Communicator& ranks, const std::function<void(const std::string&)>& say,
                OpenedMachine& opened);

}  // namespace ridge::cli
