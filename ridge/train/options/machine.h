// Machine: the device that a run is planned for and executed on.
#pragma once
#include <map>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/core/device_profile.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/parallel_regions.h"

namespace ridge {

struct Machine {
  Backend* backend = nullptr;  // not owned
  DeviceProfile profile;
  // `--kernels tuned`: measured seconds by KernelChoice::key, which choose between kernels.  Empty:
  // the nominal device chooses.
  std::map<std::string, double> kernel_s = {};
  InterOp inter_op = {};  // `--inter-op`

  Roofline measured() const { return Roofline(profile); }  // predicts the seconds of a plan
};

}  // namespace ridge
