// How the bytes of a run on a device are shown: each part as planned and as measured, and what they
// prove.
#pragma once
#include <string>

#include "ridge/core/device_bytes.h"
#include "ridge/report/terminal.h"

namespace ridge {

// Ends in a newline.
std::string DeviceBytesReport(const DeviceBytes& bytes, const Terminal& terminal);

// "cuda:0: bytes proven: 45.0 MiB planned, 44.0 MiB in use at the end"
std::string DeviceBytesVerdict(const DeviceBytes& bytes);

}  // namespace ridge
