// What RNN, GRU and LSTM share: inputs of one direction, activations, the walk over the steps.
//
// The input's product with W is one matmul over all steps; the steps themselves run inside one
// operator (lstm, gru, rnn) where it computes what the node says, else they are unrolled.
#pragma once
#include <string>
#include <vector>

#include "ridge/onnx/import/node.h"

namespace ridge {

// "HardSigmoid" with its numbers.
struct RecurrentActivation {
  std::string name;
  double alpha = 0, beta = 0;
};

struct RecurrentExtents {
  int64_t seq_len = 0, batch = 0, input = 0, hidden = 0, gates = 0, directions = 0;
};

// One direction of a node.
struct RecurrentCell {
  RecurrentExtents e;
  bool reverse = false;
  Value w, r;       // [gates*hidden, input], [gates*hidden, hidden]
  Value wb, rb;     // [gates*hidden]; invalid without B
  Value h, c;       // initial states [batch, hidden]; c for LSTM only
  Value peepholes;  // [3*hidden]; invalid without
  Value lengths;    // i64[batch, 1]; invalid when every sequence has seq_len steps
  double clip = 0;  // 0: none
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
  std::vector<RecurrentCell> cells;
  bool batch_first = false;
};
// `defaults` names the activations of one direction; `with_c`: inputs 6 and 7 are initial_c and P.
Result<RecurrentNode> ReadRecurrent(OnnxNode& n, int64_t gates,
                                    const std::vector<std::string>& defaults, bool with_c);

// x with `limit` on both sides (0: none) through the activation.
Value Activate(Value x, const RecurrentActivation& activation, double limit = 0);

// x [batch, parts * hidden] -> part `i` of it.
Value TakePart(Value x, int64_t i, int64_t hidden);
// x [seq_len, batch, input] times w^T plus bias: [seq_len, batch, gates*hidden].
Value ProjectInput(Value x, const RecurrentCell& cell, Value bias);

// Calls step(projected [batch, gates*hidden], h, c), which gives new states, for each step in the
// cell's direction; a sequence that is over keeps its states and gives zeros.
struct StepStates {
  Value h, c;
};
template <typename Step>
Result<RecurrentStates> WalkSteps(OnnxNode& n, Value projected, const RecurrentCell& cell,
                                  const Step& step);

// Y, Y_h and Y_c from the states of all directions.
Status SetRecurrentOutputs(OnnxNode& n, const RecurrentNode& node,
                           const std::vector<RecurrentStates>& states);

// Whether the operators lstm, gru and rnn compute this cell: no clip, no peepholes, and these
// activations.  They go on where a sequence is over: forward that changes nothing before, but in
// reverse it would.
bool IsPlain(const RecurrentCell& cell, std::initializer_list<const char*> activations);
// The state after the last step of `states` [seq_len, batch, hidden]; `first` when there is none.
Value LastState(GraphBuilder& b, const RecurrentCell& cell, Value states, Value first);
// `states` with zeros where a sequence is over.
Value ZeroWhereOver(GraphBuilder& b, const RecurrentCell& cell, Value states);

// The pieces of WalkSteps.
Value StepOf(GraphBuilder& b, Value projected, int64_t t);
Value KeepWhereOver(GraphBuilder& b, const RecurrentCell& cell, int64_t t, Value fresh, Value kept);
Value StackSteps(GraphBuilder& b, const std::vector<Value>& steps);
Status SpendSteps(OnnxNode& n, int64_t seq_len);  // before anything of that size is made

template <typename Step>
Result<RecurrentStates> WalkSteps(OnnxNode& n, Value projected, const RecurrentCell& cell,
                                  const Step& step) {
  GraphBuilder& b = n.b();
  RIDGE_RETURN_IF_ERROR(SpendSteps(n, cell.e.seq_len));
  std::vector<Value> ys(static_cast<size_t>(cell.e.seq_len));
  StepStates now{cell.h, cell.c};
  for (int64_t i = 0; i < cell.e.seq_len; ++i) {
    const int64_t t = cell.reverse ? cell.e.seq_len - 1 - i : i;
    const StepStates next = step(StepOf(b, projected, t), now);
    ys[static_cast<size_t>(t)] = KeepWhereOver(b, cell, t, next.h, Value());
    now.h = KeepWhereOver(b, cell, t, next.h, now.h);
    if (now.c.valid()) now.c = KeepWhereOver(b, cell, t, next.c, now.c);
    RIDGE_RETURN_IF_ERROR(n.status());
  }
  return RecurrentStates{StackSteps(b, ys), now.h, now.c};
}

// Each file's converters, for the family's table.
Status ConvertRnn(OnnxNode& n);   // recurrent.cc
Status ConvertGru(OnnxNode& n);   // recurrent.cc
Status ConvertLstm(OnnxNode& n);  // recurrent_lstm.cc

}  // namespace ridge
