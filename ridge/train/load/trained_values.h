// TrainedValues: what a run's parameters are for use: averaged, and with adapters merged.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/core/tensor.h"

namespace ridge {

// As TrainedTensors; but each parameter that the run averages (`--ema`) is its average, each weight
// with an adapter (`--lora`) has it merged, and those of `--frozen-weights` are floats.  The names
// are those of LoadModel's graph.
Result<std::map<std::string, Tensor>> TrainedValues(const std::string& model,
                                                    const std::string& checkpoint,
                                                    std::vector<std::string>* warnings = nullptr);

}  // namespace ridge
