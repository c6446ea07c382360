// Places: where along a model's depth each node of a training step belongs.
//
// The step is the graph `micro` of learn/training_graph.h: forward, gradients, and sums of
// gradients over micro batches (states of role kGradient).  Positions number the nodes that the
// loss depends on, in the order of the graph; a stage is an interval of positions.  A node of the
// backward pass belongs where the forward values and parameters are that it reads, but never behind
// a gradient that it reads and never before a parameter whose gradient it leads to.  So gradients
// cross each border of stages downwards only, wherever it is.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

enum class StepPart : uint8_t {
  kAnywhere,  // depends on no variable: runs wherever it is read
  kForward,
  kBackward,
  kWeights,  // of the backward pass, what leads to the update of one variable and nothing else
};

struct Place {
  StepPart part = StepPart::kAnywhere;
  int position = 0;

  bool is_backward() const { return part == StepPart::kBackward || part == StepPart::kWeights; }
};

struct StepPlaces {
  int positions = 0;
  std::vector<Place> nodes;              // by node of the step
  std::map<std::string, int> variables;  // position of each variable of the step and of the update

  // REQUIRES: the value is a result of `graph`, the graph of these places.
  const Place& Of(const Graph& graph, ValueId id) const {
    return nodes[static_cast<size_t>(graph.value(id).producer)];
  }
};

// `update` is the graph of that name; its optimizer states belong where their parameters are.
// Fails with kUnsupported when a variable changes before the step has read it for the last time,
// and with kInvalidModel when the loss depends on no variable.
Result<StepPlaces> PlaceStep(const Graph& micro, const Graph& update);

// Whether the step or its update writes the variable.
bool IsUpdated(const Graph& graph, const std::string& variable);

}  // namespace ridge
