// Cache: all samples of a source in memory, so that later epochs copy instead of convert.
#pragma once
#include "ridge/data/source.h"

namespace ridge {

// Host memory that CacheInMemory(source) will hold.
int64_t CachedBytes(const Source& source);

// Reads every sample once, now; the result does not need `source` any more.
// Fails with kOutOfMemory when it does not fit, or as reading does.
Result<SourcePtr> CacheInMemory(const Source& source);

}  // namespace ridge
