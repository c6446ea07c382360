#include "ridge/runtime/profile_store.h"

#include <cmath>

#include "ridge/core/files.h"
#include "ridge/core/process.h"

namespace ridge {

std::string ProfilesFolder() { return CacheFolder() + "/profiles"; }
std::string ProfilePath(const std::string& id) { return ProfilesFolder() + "/" + id + ".json"; }

Result<DeviceProfile> LoadProfile(const std::string& id) {
  const std::string path = ProfilePath(id);
  constexpr int64_t kMostBytes = 64 << 20;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  RIDGE_ASSIGN_OR_RETURN(DeviceProfile profile, ProfileFromJson(text, path));
  if (profile.id == id) return profile;
  return Status(ErrorCode::kInvalidData,
                path + ": is the profile of '" + profile.id + "'. hint: ridge bench device");
}

Status SaveProfile(const DeviceProfile& profile) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(ProfilesFolder()));
  return WriteFileAtomically(ProfilePath(profile.id), ProfileToJson(profile));
}

Result<DeviceProfile> LoadOrMeasureProfile(
    const std::string& id, double now_s,
    const std::function<Result<DeviceProfile>(bool again)>& measure) {
  constexpr double kRetryAfter_s = 60;
  Result<DeviceProfile> stored = LoadProfile(id);
  if (stored.ok() && IsTrusted(*stored)) return stored;
  const bool fresh = stored.ok() && stored->steadiness.known && !stored->contradicted &&
                     std::abs(now_s - UtcSeconds(stored->made_at)) < kRetryAfter_s;
  if (fresh) return stored;
  Result<DeviceProfile> measured = measure(/*again=*/stored.ok());
  if (!measured.ok()) return stored.ok() ? stored : measured;
  if (stored.ok() && !stored->contradicted && measured->kernel_rates.empty())
    measured->kernel_rates = stored->kernel_rates;
  if (stored.ok() && IsSteady(stored->steadiness) && IsSteady(measured->steadiness) &&
      Agree(*stored, *measured)) {
    stored->confirmed = true;
    measured = stored;
  }
  (void)SaveProfile(*measured);  // if it fails, the next run measures
  return measured;
}

void NoteContradiction(const std::string& id) {
  Result<DeviceProfile> stored = LoadProfile(id);
  if (!stored.ok() || stored->contradicted) return;
  stored->contradicted = true;
  (void)SaveProfile(*stored);
}

}  // namespace ridge
