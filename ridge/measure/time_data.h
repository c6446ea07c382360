// BenchData: how fast samples are read, by stage: `ridge data --bench`.
//
// Times the loader that training uses, with batches that nobody computes on.
#pragma once
#include "ridge/data/batch_loader.h"

namespace ridge {

struct DataBenchOptions {
  int workers = 1;
  int64_t batch = 32;
  double seconds = 2;  // at least, for each number of workers
  uint64_t seed = 0;
};

struct DataBench {
  int64_t samples = 0;    // of a pass; the fastest of several passes over the same samples counts
  StageSeconds one_core;  // of one worker
  double one_core_samples_s = 0;
  int workers = 1;  // that have something to do
  double samples_s = 0;
};

// Pictures become f32[C,H,W] and other arrays of bytes f32; the rest stays as it is.  Fails as
// reading does.
Result<DataBench> BenchData(const SourcePtr& source, const DataBenchOptions& options);

}  // namespace ridge
