// What the recurrent operators (lstm, gru, rnn) and their gradients share: extents, checks, the
// order of the steps, and the gradient of the recurrent weight.
//
// The input's product with its weight is not part of them: it is one matmul over all steps, and so
// are the gradients of both weights.  Only what has to go step by step is inside:
//   inner[t] = h[t-1] r^T,  [batch, gates*hidden];  r: [gates*hidden, hidden]
// With reverse=1 the last step is computed first; y[t] still belongs to projected[t].
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"

namespace ridge {

struct SequenceExtents {
  int64_t seq_len = 0, batch = 0, hidden = 0;
  bool reverse = false;

  // Of the step computed as number `step`; REQUIRES: step < seq_len.
  int64_t TimeAt(int64_t step) const { return reverse ? seq_len - 1 - step : step; }
  int64_t StateElements() const { return batch * hidden; }
};

// From [seq_len, batch, ..] (input `sequence`) and r [.., hidden] (input `r`).
SequenceExtents SequenceExtentsOf(const OpCall& call, size_t sequence, size_t r);

// projected (input 0) is a float [seq_len, batch, gates*hidden], r (1) fits it, h (2) is
// [batch, hidden], reverse is 0 or 1.
Status CheckSequence(const OpCall& call, int64_t gates);

// What gradients check: r (input `r`) is a float [gates*hidden, hidden], sequence `i` is
// [seq_len, batch, columns*hidden] of its dtype.
Status CheckWeight(const OpCall& call, size_t r, int64_t gates);
Status CheckSteps(const OpCall& call, size_t i, const char* name, int64_t columns, size_t r);

// The batch: dimension 1 of the sequences, 0 of the states (h, and c of lstm).
Axes RecurrentAxes(const OpCall& call);

// Attribute `gates` is a permutation of the letters of `all`.
Status CheckGates(const OpCall& call, const std::string& all);
// Where the block of this gate begins in a row, in blocks of `hidden`.
int64_t GateAt(const std::string& gates, char gate);

// Products of references: sums[row] += r[row] . h, and its transpose dh += sum of d[row] r[row].
void AddInner(const double* r, int64_t rows, int64_t hidden, const double* h, double* sums);
void AddInnerGrad(const double* r, int64_t rows, int64_t hidden, const double* d, double* dh);

// flops of the products of all steps plus `each` for every element of a state; all operands once.
Cost SequenceCost(const OpCall& call, const SequenceExtents& e, int64_t gates, int64_t each);

// The states before each step, [seq_len, batch, hidden], from the first one and y.
Value StatesBefore(GraphBuilder& b, Value h, Value y, bool reverse);
// dr = sum over steps and batch of dinner^T h[t-1]: one product.
Value RecurrentWeightGrad(GraphBuilder& b, Value dinner, Value h, Value y, bool reverse);

}  // namespace ridge
