// LengthForm: a model's forward graph for batches of shorter samples, over the same parameters.
#pragma once
#include <string>

#include "ridge/learn/training_graph.h"

namespace ridge {

struct LengthForm {
  int64_t length = 0;  // tokens of a sample
  int64_t batch = 0;
  Graph graph;  // its data inputs are named LengthName(NAME, length)
  ForwardInfo facts;
};

// "input_ids" -> "input_ids.64": of an input of a shorter form, or a step that runs one.
std::string LengthName(const std::string& name, int64_t length);

// Tokens of a sample of the whole form: the second extent in which its inputs differ from those of
// `shorter`; 0: they do not.
int64_t WholeLength(const Graph& whole, const ForwardInfo& facts, const LengthForm& shorter);

// REQUIRES: the data inputs of `graph` have the names of the whole form's.
Result<LengthForm> MakeLengthForm(Graph graph, int64_t length);

}  // namespace ridge
