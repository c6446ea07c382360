// What a run measures of memory when it is over.
#pragma once
#include <optional>
#include <vector>

#include "ridge/core/device_bytes.h"
#include "ridge/learn/length_form.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job_data.h"
#include "ridge/train/options/machine.h"

namespace ridge {

// Of the input slots, of all lengths.
int64_t MeasuredSlotBytes(Executor& executor, const JobData& data,
                          const std::vector<LengthForm>& lengths, int64_t batch);

// Of a device with a memory of its own, of which so many bytes are in use now.
std::optional<DeviceBytes> EndDeviceBytes(const Machine& machine, int64_t used_bytes,
                                          int64_t peak_bytes);

}  // namespace ridge
