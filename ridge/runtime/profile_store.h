// Device profiles on disk: CACHE/profiles/<id>.json, one per device and thread count.
#pragma once
#include <functional>
#include <string>

#include "ridge/core/device_profile.h"

namespace ridge {

// The folder of profiles and kernel times (kernel_times.h).
std::string ProfilesFolder();
std::string ProfilePath(const std::string& id);

// Fails with kInvalidData when there is none or it is damaged.
Result<DeviceProfile> LoadProfile(const std::string& id);
Status SaveProfile(const DeviceProfile& profile);

// The stored profile; without one the result of `measure`, which is stored.  An untrusted profile
// is remeasured when it is a minute old, or at once when kernels contradicted it; when both
// measurements are steady and agree, the stored one is confirmed and kept.  Rates of kernels, which
// a quick measurement lacks, stay unless kernels contradicted them.  A cache folder that cannot be
// written is no error: the next call measures.  `again`: a stored profile exists. `now_s`: seconds
// since 1970.
Result<DeviceProfile> LoadOrMeasureProfile(
    const std::string& id, double now_s,
    const std::function<Result<DeviceProfile>(bool again)>& measure);

// Marks the stored profile as contradicted by the measured times of a plan's kernels.
void NoteContradiction(const std::string& id);

}  // namespace ridge
