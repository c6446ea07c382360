#include "ridge/dist/rank_doing.h"

#include <mutex>
#include <set>

namespace ridge {

const char* KeptName(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace ridge
