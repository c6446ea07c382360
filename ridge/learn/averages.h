// Averages of parameters over the updates: `--ema`.
//
//   average = average + (1 - decay) (param - average)     after each update
//
// The first update sets it to the parameter, as torch.optim.swa_utils.AveragedModel does.  It is a
// state PARAM.ema of the optimizer; evaluations read it instead of the parameter.  Running
// statistics are not averaged: they are averages already.
#pragma once
#include <map>
#include <string>

#include "ridge/graph/builder.h"

namespace ridge {

inline constexpr char kAverageSuffix[] = ".ema";

// Appends the average of each parameter that the graph's updates change.  `step` is 1 at the first
// update.  Where `apply`, bool[], is given and false, averages stay as they are.
void AppendAverages(GraphBuilder& b, double decay, Value step, Value apply = {});

// The graph with the averages in the place of the parameters that are trained.
Graph ReadAverages(Graph graph);

// Replaces PARAM by PARAM.ema where there is one.
void TakeAverages(std::map<std::string, Tensor>& tensors);

}  // namespace ridge
