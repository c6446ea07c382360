// CacheDecoded: `--cache`, which keeps the decoded samples of a run's sets in files or in memory.
#pragma once
#include <string>

#include "ridge/data/source.h"
#include "ridge/train/options/options.h"

namespace ridge {

// Where the files lie: CacheFolder()/samples.
std::string SampleCacheFolder();

// Puts a cache around each set that takes time to read; notes say what was written, and what did
// not fit.  Nothing where options.cache is empty.  Fails as CacheOnDisk and CacheDecodedInMemory
// do.
Status CacheDecoded(const TrainOptions& options, int threads, DataSplits& splits);

}  // namespace ridge
