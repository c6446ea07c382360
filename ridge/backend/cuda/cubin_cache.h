// CubinCache: compiled kernels on disk, so that the second run compiles nothing.
#pragma once
#include <optional>
#include <string>

namespace ridge::cuda {

// A file a kernel, named by the hash of its key.  A file that is damaged or can't be read is as if
// it were not there; one that can't be written is compiled again next time.  Any number of
// processes at a time.
class CubinCache {
 public:
  // `folder` is made when the first kernel is kept.
  explicit CubinCache(std::string folder) : folder_(std::move(folder)) {}

  // `key`: all that the code depends on.
  std::optional<std::string> Find(const std::string& key) const;
  void Keep(const std::string& key, const std::string& code) const;

 private:
  std::string PathOf(const std::string& key) const;

  const std::string folder_;
};

}  // namespace ridge::cuda
