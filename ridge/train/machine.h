// Machine: what a run is planned for and executed on.
#pragma once
#include "ridge/backend/backend.h"
#include "ridge/core/device_profile.h"

namespace ridge {

struct Machine {
  Backend* backend = nullptr;  // not owned
  DeviceProfile profile;
};

}  // namespace ridge
