// SampleTraining: `--sampler`, which draws training samples by their class.
#pragma once
#include "ridge/train/job/job_data.h"

namespace ridge {

// "balanced": an empty vector; else the shares.  Fails with kInvalidArgument for what is no finite
// number of at least 0, and where none is above 0.
Result<std::vector<double>> ParseSampler(const std::string& sampler);

// Puts a GroupSource of the classes around data.train, and a note of what it draws.  Nothing where
// options.sampler is empty.  Samples with an ignored label are never drawn.
// REQUIRES: data.train_spec.  Fails with kInvalidArgument where the model has not one integer class
// a sample, or another number of classes than there are shares; else as reading the labels does.
Status SampleTraining(const TrainOptions& options, const Graph& forward, const ForwardInfo& facts,
                      JobData& data);

}  // namespace ridge
