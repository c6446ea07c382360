// What the converter of RNN, GRU and LSTM is made of: a node taken apart, its steps, its outputs.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "ridge/graph/ops/shared/recurrent.h"
#include "ridge/onnx/import/node.h"

namespace ridge {

// "HardSigmoid" with its numbers.
struct RecurrentActivation {
  std::string name;
  double alpha = 0, beta = 0;
};

struct RecurrentExtents {
  int64_t seq_len = 0, batch = 0, input = 0, hidden = 0, blocks = 0, directions = 0;
};

// One direction of a node.
struct RecurrentDirection {
  RecurrentExtents e;
  bool reverse = false;
  Value w, r;       // [blocks*hidden, input], [blocks*hidden, hidden]
  Value wb, rb;     // [blocks*hidden]; invalid without B
  Value h, c;       // initial states [batch, hidden]; c for LSTM only
  Value peepholes;  // [3*hidden]; invalid without
  Value lengths;    // i64[batch, 1]; invalid when every sequence has seq_len steps
  double clip = 0;  // 0: none
  bool linear_before_reset = false, input_forget = false;
  std::vector<RecurrentActivation> activations;
};

// The states of all steps, and the last ones.
struct RecurrentStates {
  Value y;  // [seq_len, batch, hidden]
  Value last_h, last_c;
};

// Reads, checks and splits the node's inputs: X as [seq_len, batch, input], and the directions.
struct RecurrentNode {
  Value x;
  RecurrentExtents e;
  std::vector<RecurrentDirection> directions;
  bool batch_first = false;
};
Result<RecurrentNode> ReadRecurrent(OnnxNode& n, const RecurrentCell& cell);

// x with `limit` on both sides (0: none) through the activation.
Value Activate(Value x, const RecurrentActivation& activation, double limit = 0);

// Blocks [first, last) of x's dimension `axis`.
Value TakeBlocks(Value x, int axis, int64_t first, int64_t last, int64_t hidden);

// Calls step(projected [batch, blocks*hidden], h, c), which gives new states, for each step in the
// direction's order; a sequence that is over keeps its states and gives zeros.
struct StepStates {
  Value h, c;
};
using RecurrentStep = std::function<StepStates(Value projected, const StepStates& before)>;
Result<RecurrentStates> WalkSteps(OnnxNode& n, Value projected, const RecurrentDirection& d,
                                  const RecurrentStep& step);

// Whether the cell's operator computes this direction: no clip, no peepholes, and these
// activations.  It goes on where a sequence is over: forward that changes nothing before, but in
// reverse it would.
bool IsPlain(const RecurrentDirection& d, std::span<const char* const> activations);
// What an operator gave, `cells` for LSTM only, as WalkSteps gives it.
RecurrentStates StatesOf(GraphBuilder& b, const RecurrentDirection& d, Value y, Value cells);

// Y, Y_h and Y_c from the states of all directions.
Status SetRecurrentOutputs(OnnxNode& n, const RecurrentNode& node,
                           const std::vector<RecurrentStates>& states);

}  // namespace ridge
