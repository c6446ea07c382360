#include "ridge/runtime/sum_times_store.h"

#include <fmt/format.h>

#include <cctype>

#include "ridge/core/files.h"
#include "ridge/runtime/profile_store.h"

namespace ridge {
namespace {

// "openmpi" of "Open MPI 4.1.4".
std::string FamilyOf(const std::string& mpi) {
  std::string family;
  for (const char c : mpi) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) break;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      family += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return family;
}

bool Answers(const SumTimes& stored, const SumTimes& key) {
  return stored.device == key.device && stored.ranks == key.ranks &&
         stored.machines == key.machines && stored.mpi.starts_with(key.mpi);
}

}  // namespace

std::string SumTimesPath(const SumTimes& key) {
  return fmt::format("{}/{}.{}-{}-{}.json", ProfilesFolder(), key.device, FamilyOf(key.mpi),
                     key.ranks, key.machines);
}

Result<SumTimes> LoadSumTimes(const SumTimes& key) {
  constexpr int64_t kMostBytes = 1 << 20;
  const std::string path = SumTimesPath(key);
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  RIDGE_ASSIGN_OR_RETURN(SumTimes times, SumTimesFromJson(text, path));
  if (Answers(times, key)) return times;
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: is of '{}', {}", path, times.device, times.mpi));
}

Status SaveSumTimes(const SumTimes& times) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(ProfilesFolder()));
  return WriteFileAtomically(SumTimesPath(times), SumTimesToJson(times));
}

}  // namespace ridge
