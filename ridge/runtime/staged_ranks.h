// Exchanges of a device's memory that the host does not reach, through the host's.
#pragma once
#include <memory>

#include "ridge/backend/device.h"
#include "ridge/dist/communicator.h"
#include "ridge/plan/program.h"

namespace ridge {

// Bytes of the host's memory that the exchanges of a program take on their way.
int64_t StagedExchangeBytes(const Program& program);

// The same ranks, for spans of the device's memory: they cross to `bytes` of the host's, by
// `ranks` to the others, and back.  An exchange waits for what stands before it on the main stream,
// and what is enqueued there later sees what it received.  All of it outlives the result.  Fails
// as Device::AllocateStaging() does.
Result<std::unique_ptr<Communicator>> StageRanks(Communicator& ranks, Device& device,
                                                 int64_t bytes);

}  // namespace ridge
