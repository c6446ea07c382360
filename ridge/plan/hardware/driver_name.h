// A GPU that is here, in the catalog.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {

// The catalog's device of a driver's name and memory: "NVIDIA A100-SXM4-80GB" with 79 GiB is
// a100-sxm4-80g.  A name without its form ("NVIDIA H100 80GB HBM3") is the module's.  None where
// the catalog has no such device, as for a part of one (MIG), or several.
std::optional<Hardware> HardwareOfDriver(const std::string& name, int64_t memory_bytes);

}  // namespace ridge
