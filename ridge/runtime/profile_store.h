// Device profiles on disk: CACHE/profiles/<id>.json, one a device and thread count.
#pragma once
#include <functional>
#include <string>

#include "ridge/core/device_profile.h"

namespace ridge {

// Where these and the times of kernels (kernel_times.h) lie.
std::string ProfilesFolder();
std::string ProfilePath(const std::string& id);

// Fails with kInvalidData when there is none or it is damaged.
Result<DeviceProfile> LoadProfile(const std::string& id);
Status SaveProfile(const DeviceProfile& profile);

// The stored profile; else what `measure` says, which is stored as well.  A cache folder that
// cannot be written is no error: the profile is then measured again next time.
Result<DeviceProfile> LoadOrMeasureProfile(const std::string& id,
                                           const std::function<Result<DeviceProfile>()>& measure);

}  // namespace ridge
