#include "ridge/core/status.h"

#include <fmt/format.h>

namespace ridge {

void ThrowBug(const char* file, int line, const char* condition, const std::string& message) {
  throw Bug(fmt::format("{}:{}: {} does not hold: {}", file, line, condition, message));
}

}  // namespace ridge
