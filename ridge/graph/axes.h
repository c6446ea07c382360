// Axes of a call: which dimensions of its inputs and outputs are one index of its loops.
//
//   matmul   y[m,n] = sum over k of a[m,k] b[k,n]     m: a0, y0   n: b1, y1   k: a1, b0, summed
//   softmax  along the last of three dimensions       0: x0, y0   1: x1, y1
//
// The rule of an operator is in its record (OpDef::axes).  Batch propagation (batch_axis.h)
// reads it from inputs to outputs, slice pushdown (passes/slice_pushdown.cc) from outputs to
// inputs.
#pragma once
#include <initializer_list>
#include <optional>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

// Elements [first, first + count) of one dimension.
struct Rows {
  int64_t axis = 0, first = 0, count = 0;

  int64_t end() const { return first + count; }
  bool operator==(const Rows&) const = default;
};

// One index.  Cutting its dimensions into the same number of equal parts cuts the call into calls
// that do not depend on each other.  An input whose dimension has extent 1 broadcasts.
struct Factor {
  static constexpr int kNone = -1;
  enum class Over { kNothing, kSum, kMean, kMax, kMin };

  std::vector<int> inputs;     // the dimension of each input; kNone: the same for all values of it
  std::vector<int> outputs;    // of each output; kNone where the output is reduced over it
  Over over = Over::kNothing;  // kNothing: an output without the dimension is the same for all
  // The attribute that holds the position of the first row, if the rows differ by position.
  const char* offset_attr = nullptr;

  // Of OpDef::shared_axes only.  The dimension of input i is input_blocks[i] blocks, and the index
  // is the outermost one in each of them; empty: one block each.
  std::vector<int64_t> input_blocks = {}, output_blocks = {};
  int64_t extent = 0;  // that the number of parts divides; 0: those of the dimensions
  const char* divided_attr = nullptr;  // an integer attribute, which each part has its share of
};

// A dimension in no factor depends on all of itself.
using Axes = std::vector<Factor>;

// The operator's rule; for an operator without one that is pointwise, PointwiseAxes.
Axes AxesOf(const OpDef& op, const OpCall& call);
// OpDef::shared_axes, or AxesOf.
Axes SharedAxesOf(const OpDef& op, const OpCall& call);

// y = f(a, b, ..), broadcast: each dimension of the output.
Axes PointwiseAxes(const OpCall& call);
// Dimension d of input 0 and of each output that has one: for d == 0, d < end, or d != axis.
Axes FirstAxis(const OpCall& call);
Axes AxesBelow(const OpCall& call, int end);
Axes AxesBut(const OpCall& call, int axis);
// The same for an attribute `axis`: what a norm or a softmax leaves apart.
Axes AxesBeforeAttr(const OpCall& call);
Axes AxesBesidesAttr(const OpCall& call);

// The dimension of input i that broadcasts to dimension `output_axis` of output 0; kNone if it has
// none.
int BroadcastAxis(const OpCall& call, size_t i, int output_axis);

// A factor of these dimensions of the first inputs, and of dimension `output` of each output.
Factor Mapped(const OpCall& call, std::initializer_list<int> inputs, int output);
// A factor of these dimensions of the first inputs and the first outputs; kNone of the others.
Factor FactorOf(const OpCall& call, std::initializer_list<int> inputs,
                std::initializer_list<int> outputs, Factor::Over over = Factor::Over::kNothing);
// Dimension `axis` of input 0, summed in every output.
Factor Summed(const OpCall& call, int axis, Factor::Over over);

// A call that computes some rows of output 0.
struct SlicedCall {
  std::vector<std::optional<Rows>> inputs;  // the rows that it reads of each; nullopt: all
  AttrMap attrs;
};

// nullopt: rows along this dimension depend on each other, or are random numbers.  On the reference
// backend the rows have the bits of the whole call.
std::optional<SlicedCall> CallForRows(const OpDef& op, const OpCall& call, const Rows& rows);

}  // namespace ridge
