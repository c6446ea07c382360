// A launch of a kernel on the host: blocks one after the other, the threads of one as fibers.
#pragma once
#include <string>

#include "tests/cuda_text/host_block.h"

namespace ridge::cuda_text {

// The order of blocks, and that in which threads of a block run until they wait: a race shows as a
// difference.
enum class ThreadOrder { kForward, kBackward };

struct HostLaunch {
  const RidgeHostKernel* kernel;
  unsigned blocks, threads;
  void* const* arguments;
};

// Runs all blocks; shared memory is 0xFF at the start of each.  `now` is the program's
// `ridge_block`.  Returns "" or what CUDA forbids: a barrier that not all threads reach, a lane
// outside its own mask.
std::string RunLaunch(const HostLaunch& launch, ThreadOrder order, const RidgeHostBlock** now);

}  // namespace ridge::cuda_text
