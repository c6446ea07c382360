// Comparisons of what devices compute with what one device computes.
#pragma once
#include <string>

#include "ridge/graph/graph.h"
#include "ridge/partition/virtual_devices.h"

namespace ridge {

// The largest difference that rounding in f64 explains, relative to the largest number around.
inline constexpr double kF64Rounding = 1e-12;

// "" or what differs: "is 1.5 at 3, not 2".
std::string CompareNumbers(const std::vector<double>& got, const std::vector<double>& want,
                           double relative = kF64Rounding);

// Numbers of tensors by name.
NamedNumbers NumbersOf(const std::map<std::string, Tensor>& tensors);

// Steps of the whole graph on one device against those of its parts: outputs of each step and
// variables after the last.  "" or what differs.  `inputs` are those of every step; `ridge.step`
// counts from 1.
std::string CompareSteps(const Graph& whole, const Partitioned& parts, const Graph& form,
                         const NamedNumbers& inputs, int steps, uint64_t seed = 0);

}  // namespace ridge
