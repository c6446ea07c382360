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

// The stored profile; else what `measure` says, which is stored as well.  A stored one that is not
// to be trusted is measured again, a minute after it was made; when kernels had contradicted it and
// the new numbers are the same, it is confirmed and stays.  A cache folder that cannot be written
// is no error: the profile is then measured again next time. `again`: what is measured replaces a
// profile that is there.  `now_s`: seconds since 1970.
Result<DeviceProfile> LoadOrMeasureProfile(
    const std::string& id, double now_s,
    const std::function<Result<DeviceProfile>(bool again)>& measure);

// Notes in the stored profile that the kernels of a plan took other times than it says.
void NoteContradiction(const std::string& id);

}  // namespace ridge
