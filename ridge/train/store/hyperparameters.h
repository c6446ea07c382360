// The options of a run that TensorBoard's page of hyperparameters shows.
#pragma once
#include <vector>

#include "ridge/observe/event_writer.h"
#include "ridge/train/options/options.h"

namespace ridge {

// Those that change what is learned and that have a value, by the names of the command line.
std::vector<Hyperparameter> HyperparametersOf(const TrainOptions& options);

}  // namespace ridge
