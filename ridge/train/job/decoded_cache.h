// CacheDecoded: `--cache disk`, which keeps the decoded samples of a run's sets in files.
#pragma once
#include "ridge/data/source.h"
#include "ridge/train/options/options.h"

namespace ridge {

// Puts a cache around each set that takes time to read, in CacheFolder()/samples; notes say what
// was written.  Nothing where options.cache is empty.  Fails as CacheOnDisk does.
Status CacheDecoded(const TrainOptions& options, int threads, DataSplits& splits);

}  // namespace ridge
