// The recurrent cells: lstm, gru and rnn, each a record of the table that kernels and ONNX read.
//
// The input's product with its weight is not part of them: it is one matmul over all steps, and so
// are the gradients of both weights.  Only what has to go step by step is inside:
//   inner[t] = h[t-1] r^T,  [batch, blocks*hidden];  r: [blocks*hidden, hidden]
// With reverse=1 the last step is computed first; y[t] still belongs to projected[t].
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ridge/graph/op_def.h"

namespace ridge {

struct RecurrentOperand {
  enum Shape {
    kSteps,   // [seq_len, batch, blocks*hidden]
    kState,   // [batch, hidden]
    kWeight,  // [blocks*hidden, hidden]
    kVector,  // [hidden]
  };
  const char* name;
  Shape shape;
  int64_t blocks = 1;
  const char* why = "";  // ends the message about another type
  bool optional = false;
};

// What a reference computes at once: one sample at one step.
struct RecurrentRow {
  const OpCall& call;
  std::span<const double* const> in;
  std::span<double* const> out;
  int64_t hidden = 0;
  int64_t sample = 0;   // the sample's place in [batch, hidden]
  int64_t now = 0;      // its place in [seq_len, batch, hidden]
  int64_t before = -1;  // that of the step before; -1: there is none

  // The state before this step.
  const double* Before(const double* first, const double* states) const {
    return before < 0 ? first + sample : states + before;
  }
};

// One of the cell's two operators.
struct RecurrentOp {
  const char* name;
  const char* doc;
  std::span<const RecurrentOperand> inputs, outputs;
  const char* sequence;     // the input that says seq_len and batch
  int64_t flops;            // of an element of the state, beside the products
  const char* in_place[2];  // the output that may overwrite the input; nullptr: none
  void (*row)(const RecurrentRow& row);

  // REQUIRES: there is one of this name.
  size_t Input(std::string_view operand) const;
  size_t Output(std::string_view operand) const;
};

// Operands of `back` tell by their names what they are: an operand of `forward`, or the gradient
// "dNAME" of one.  "dinner", where there is one, is that of inner; else "dprojected" is.
struct RecurrentCell {
  const char* gates;  // the letters of the blocks in the order that is the default; "": one block
  const char* flag;   // an attribute, 0 or 1; nullptr: none
  RecurrentOp forward, back;
  OnnxOp onnx;
  const char* onnx_gates;
  std::span<const char* const> onnx_activations;

  int64_t blocks() const;
  bool has_cells() const;               // a second state, c
  std::string_view inner_grad() const;  // "dinner" or "dprojected"
};
extern const RecurrentCell kLstmCell, kGruCell, kRnnCell;

struct SequenceExtents {
  int64_t seq_len = 0, batch = 0, hidden = 0;
  bool reverse = false;

  // Of the step computed as number `step`; REQUIRES: step < seq_len.
  int64_t TimeAt(int64_t step) const { return reverse ? seq_len - 1 - step : step; }
  int64_t StateElements() const { return batch * hidden; }
};
SequenceExtents SequenceExtentsOf(const RecurrentOp& op, const OpCall& call);

// Where the block of this gate begins in a row, in blocks of `hidden`.
int64_t GateAt(const std::string& gates, char gate);

}  // namespace ridge
