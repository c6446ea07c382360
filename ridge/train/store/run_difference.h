// What of a run that goes on differs from the run so far, and changes its bits.
#pragma once
#include <string>

#include "ridge/train/store/checkpoint_state.h"

namespace ridge {

// The first node that two plans, as plan.json has them, run by other kernels: "node 'relu' of step
// 'train' on A, on B then"; "" where there is none or one of them can't be read.
std::string FirstOtherKernel(const std::string& now_plan_json, const std::string& then_plan_json);

// Changed data, number of threads, type of device, libraries, mesh or kernels: "2 threads; the run
// has used 4"; "" for none.  `now`: a checkpoint's state as the run would write it now.
// `other_kernel`: of FirstOtherKernel.
std::string RunDifference(const CheckpointState& now, const CheckpointState& then,
                          const std::string& other_kernel = "");

}  // namespace ridge
