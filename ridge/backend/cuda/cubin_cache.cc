#include "ridge/backend/cuda/cubin_cache.h"

#include <fmt/format.h>

#include "ridge/core/crc32c.h"
#include "ridge/core/files.h"
#include "ridge/core/sha256.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;

std::string HeaderOf(const std::string& code) {
  return fmt::format("ridge cubin {:08x} {}\n", Crc32c(code), code.size());
}

}  // namespace

std::string CubinCache::PathOf(const std::string& key) const {
  return fmt::format("{}/{}.cubin", folder_, Sha256Hex(key));
}

std::optional<std::string> CubinCache::Find(const std::string& key) const {
  Result<std::string> file = ReadFile(PathOf(key), kMostBytes);
  if (!file.ok()) return std::nullopt;
  const size_t end = file->find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string code = file->substr(end + 1);
  if (file->substr(0, end + 1) != HeaderOf(code)) return std::nullopt;
  return code;
}

void CubinCache::Keep(const std::string& key, const std::string& code) const {
  if (!MakeFolders(folder_).ok()) return;
  const Status kept = WriteFileAtomically(PathOf(key), HeaderOf(code) + code);
  if (!kept.ok()) return;  // it is compiled again
}

}  // namespace ridge::cuda
