// What reading samples costs, and how it lies beside the steps that compute.
#pragma once
#include "ridge/data/batch_spec.h"

namespace ridge {

// Seconds of one core for a sample, converted to the inputs: the mean over samples that are spread
// over the source, for at most a twentieth of a second.  0 where reading is fast or nothing can be
// read.
double MeasureReadSeconds(const SourcePtr& source, const BatchSpec& spec);

// The seconds of a step that computes for `compute_s` on `threads` cores while `workers` read
// batches of `read_s` core seconds, where there are `cores`: the longest of computing, of reading,
// and of both shared among all cores.  Without cores reading is not counted.
double SecondsBesideReading(double compute_s, int threads, double read_s, int workers, int cores);

}  // namespace ridge
