// OpDef: all facts about one operator, in one record.
//
// Definitions live in ridge/graph/ops/, in the files that ops.def lists; AllOps() holds them,
// and no global constructor runs.  Every reader of an operator's facts (type checker, autodiff,
// passes, planner, backends, docs, tests) reads this record; none has a switch over operators.
// Backends hold the fast kernels; `reference` is the slow, plain one that every kernel is tested
// against.  It computes in double whatever the dtype: the reference backend converts on the way in
// and rounds once on the way out, so its result is the best a kernel of that dtype could give.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/core/status.h"
#include "ridge/graph/attributes.h"

namespace ridge {

class GradBuilder;
class Graph;
struct Factor;
struct Node;
struct PatternMatch;

// One use of an operator: the types of its inputs and outputs, and its attributes.
struct OpCall {
  std::string where;                // "conv 'stem' (line 8)", for messages
  std::vector<TensorType> inputs;   // an absent optional input is kAbsent
  std::vector<TensorType> outputs;  // empty while types are inferred
  AttrMap attrs;                    // with the defaults filled in

  static TensorType Absent() { return {DType::kF32, {-1}}; }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != Absent(); }
  // REQUIRES: the attribute is declared in attr_defaults with this kind.
  int64_t integer(const std::string& name) const { return attrs.integer(name); }
  double number(const std::string& name) const { return attrs.number(name); }
  const std::string& text(const std::string& name) const { return attrs.text(name); }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return attrs.integers(name);
  }
};

// Work of one call, exact and device-independent; plan/cost/ turns it into seconds.
struct Cost {
  int64_t flops = 0;  // multiply-add counts as 2; taps that fall into padding do not count
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

// Whether the planner may recompute the output instead of keeping it.
enum class Recompute { kCheap, kExpensive, kNever };

// What limits the operator on most devices, and which efficiency curve of the profile prices it.
enum class CostClass { kElementwise, kReduce, kMatmul, kConv, kNorm, kPool, kMove, kOptimizer };

// The operator of ONNX that computes the same, and the first opset that has it in the form that
// export writes, by the dtype of its first input.  0: none has.
struct OnnxOp {
  const char* name = nullptr;  // "Softmax"; nullptr: ONNX lacks it
  int floats = 0;              // f64, f32, f16
  int bf16 = 0;
  int integers = 0;  // i64, i32
  int others = 0;
};

// How the result over all samples follows from partial results, each of some samples.
enum class Linear {
  kNo,
  kJointly,  // the sum of f(partial inputs) is f of their sums; for means, f may add constants
  kFirst,    // f is linear in input 0 while the others are the same
  kEach,     // and in each other input
};

struct OpDef {
  std::string name = {};
  std::string doc = {};                       // one or two sentences; shapes and the formula
  std::vector<std::string> input_names = {};  // "bias?" is optional; "x..." (last) is one or more
  // Where a call has more outputs, they have these names again.
  std::vector<std::string> output_names = {};
  AttrMap attr_defaults = {};  // every attribute, with its kind; others are refused
  std::vector<std::string> required_attrs = {};  // those of attr_defaults that must be given
  CostClass cost_class = CostClass::kElementwise;

  // REQUIRES: number and presence of inputs, and names and kinds of attributes, are checked.
  Result<std::vector<TensorType>> (*infer_types)(const OpCall&) = nullptr;
  // nullptr: no flops, every input read once, every output written once.
  Cost (*cost)(const OpCall&) = nullptr;
  // Emits the gradient nodes.  nullptr: not differentiable.
  void (*gradient)(GradBuilder&) = nullptr;
  // Inputs through which no gradient flows although the operator has one (indices, labels).
  std::vector<int> no_gradient_inputs = {};

  // Pairs (output, input): the output may overwrite that input when it is dead afterwards.
  std::vector<std::pair<int, int>> in_place = {};
  // Output 0 is a view of this input's bytes (reshape): no kernel runs.
  int alias_input = -1;
  Recompute recompute = Recompute::kExpensive;
  // A pointwise operator has the inputs of that one, and its attributes by name: import and export
  // need nothing else, unless a converter or an exporter says more.
  OnnxOp onnx = {};

  // Finds the operator in the primitive nodes that exporters write for it and that end in `root`
  // (pattern.h).  nullptr: it is not looked for.
  PatternMatch (*pattern)(const Graph& graph, const Node& root) = nullptr;

  // Which dimensions of inputs and outputs are one index (axes.h).  nullptr: those of a pointwise
  // operator when `elementwise` is given, else every dimension depends on all of itself.
  std::vector<Factor> (*axes)(const OpCall&) = nullptr;
  // All factors along which devices share a call (partition/); nullptr: those of `axes`.  They may
  // sum, take the largest, cut an inner block of a dimension, or divide an attribute.
  std::vector<Factor> (*shared_axes)(const OpCall&) = nullptr;
  Linear linear = Linear::kNo;
  const char* dims_attr = nullptr;  // the attribute that spells output 0's dims
  bool draws = false;  // random numbers by sample, which dimension 0 of the output counts
  // The operator couples its samples, but runs on equal slices of a batch that run in step when
  // this attribute is their number: output 0 then has the samples of input 0 along dimension 0, the
  // others are those of the batch.
  const char* slices_attr = nullptr;
  bool gathers_slices = false;  // reads what all slices of the batch have

  // For pointwise operators on broadcast inputs: one output element from one element of each input.
  // Makes the operator fusible.
  double (*elementwise)(std::span<const double> args, const AttrMap& attrs) = nullptr;

  // in[i] is nullptr for an absent input.  Row-major, sizes by call.inputs and call.outputs.
  // For pointwise operators this may be left out: it follows from `elementwise`.
  void (*reference)(const OpCall& call, std::span<const double* const> in,
                    std::span<double* const> out) = nullptr;
};

// All operators, in the order of ops.def.
const std::vector<OpDef>& AllOps();
// nullptr when no operator has this name.
const OpDef* FindOp(std::string_view name);

// Checks number of inputs and attributes against the definition, fills the defaults in, infers the
// output types and checks them.  Errors carry call.where.
Result<std::vector<TensorType>> InferCall(const OpDef& op, OpCall& call);

// The cost of `flops`, with every present input read once and every output written once.
Cost StreamingCost(const OpCall& call, int64_t flops);

// OpDef::cost or its default.
Cost CallCost(const OpDef& op, const OpCall& call);

// OpDef::reference, or the loop over `elementwise` with broadcasting.
void RunReference(const OpDef& op, const OpCall& call, std::span<const double* const> in,
                  std::span<double* const> out);

// An error of this call: kInvalidModel with "where: text".
Status CallError(const OpCall& call, const std::string& text);

}  // namespace ridge
