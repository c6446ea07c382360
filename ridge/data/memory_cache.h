// Memory cache: decoded samples of a source, kept as they are read first, for later epochs.
//
// The first samples by number are kept, as many as fit; the others are decoded each time.  All of
// it is allocated at once, so what a run will hold is known before its first step.
#pragma once
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

struct MemoryCached {
  SourcePtr source;
  int64_t samples = 0;  // that are kept; 0: `source` is the one that was given
  int64_t bytes = 0;    // of the cache
};

// At most `limit_bytes`.  What cannot be decoded fails whenever it is read, as without a cache.
// `counted`: sources whose memory is counted elsewhere.  Fails with kUnsupported for samples that
// are not encoded in files, with kOutOfMemory where this machine has too little.
Result<MemoryCached> CacheDecodedInMemory(const SourcePtr& source, int64_t limit_bytes,
                                          const std::vector<SourcePtr>& counted = {});

}  // namespace ridge
