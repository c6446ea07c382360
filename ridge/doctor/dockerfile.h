// A Dockerfile whose versions agree with one another and with a machine's driver and GPUs.
#pragma once
#include <string>

#include "ridge/core/status.h"
#include "ridge/doctor/probe.h"

namespace ridge {

// A stage for each framework that is installed: the release that is there where the driver and the
// GPUs run it, else the newest that they do.
// Fails with kInvalidArgument when no framework is installed.
Result<std::string> DockerfileFor(const Probe& probe);

}  // namespace ridge
