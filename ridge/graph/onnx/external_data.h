// Files beside a model, opened so that nothing outside its folder is reached.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

// Opens `name`, a relative path below `folder`, for reading; no "..", no absolute path, no symbolic
// link in any of its parts, and a regular file.  The caller closes the descriptor.
// Fails with kInvalidModel.
Result<int> OpenBeneath(const std::string& folder, const std::string& name);

struct MappedBytes {
  const void* data = nullptr;
  int64_t size = 0;
  std::shared_ptr<const void> owner;  // unmaps
};

// `length` bytes from `offset` of that file (to its end when length is negative), mapped for
// reading.  Fails with kInvalidModel when the file is shorter.
Result<MappedBytes> MapBeneath(const std::string& folder, const std::string& name, int64_t offset,
                               int64_t length);

}  // namespace ridge
