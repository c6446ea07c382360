// What reading samples costs, and how it lies beside the steps that compute.
#pragma once
#include "ridge/data/batch_spec.h"

namespace ridge {

// Seconds of one core for a sample, converted to the inputs: the mean over samples that are spread
// over the source, for at most a twentieth of a second; of sources that read fast the least of
// three such means.  0 where nothing can be read.
double MeasureReadSeconds(const SourcePtr& source, const BatchSpec& spec);

// The seconds of a step that computes for `compute_s` on `threads` cores while `workers` read
// batches of `read_s` core seconds, where there are `cores`.  Readers take the cores that the step
// leaves free; on the others the whole step waits for them.  Without cores reading is not counted.
double SecondsBesideReading(double compute_s, int threads, double read_s, int workers, int cores);

}  // namespace ridge
