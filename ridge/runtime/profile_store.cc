#include "ridge/runtime/profile_store.h"

#include "ridge/core/files.h"

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

Result<DeviceProfile> LoadOrMeasureProfile(const std::string& id,
                                           const std::function<Result<DeviceProfile>()>& measure) {
  if (Result<DeviceProfile> stored = LoadProfile(id); stored.ok()) return stored;
  Result<DeviceProfile> measured = measure();
  if (measured.ok()) (void)SaveProfile(*measured);  // the next run measures again
  return measured;
}

}  // namespace ridge
