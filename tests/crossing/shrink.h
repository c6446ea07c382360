// The smallest net and plainest setting for which a law is still broken.
#pragma once
#include <functional>

#include "tests/crossing/laws.h"

namespace ridge::crossing {

struct Case {
  Net net;
  Setting setting;
};

// REQUIRES: broken(start).  `broken` is asked some hundred times.
Case Shrink(Case start, const std::function<bool(const Case&)>& broken);

}  // namespace ridge::crossing
