// ONNX converter: LSTM.
#include "ridge/onnx/import/converters/recurrent.h"

namespace ridge {
namespace {

enum Gate : int64_t { kInput, kOutput, kForget, kCandidate };  // as ONNX orders them

// x + peephole `i` of [input, output, forget] times c.
Value WithPeephole(const RecurrentCell& cell, Value x, int64_t i, Value c) {
  if (!cell.peepholes.valid()) return x;
  return x + c * TakePart(cell.peepholes, i, cell.e.hidden);
}

// i, f = f(.. + p * c); c' = f * c + i * g(..); o = f(.. + p * c'); h' = o * h(c')
Result<RecurrentStates> Unroll(OnnxNode& n, Value x, const RecurrentCell& cell, bool coupled) {
  const Value bias = cell.wb.valid() ? cell.wb + cell.rb : Value();
  const Value projected = ProjectInput(x, cell, bias);
  const RecurrentActivation &f = cell.activations[0], &g = cell.activations[1],
                            &h = cell.activations[2];
  return WalkSteps(n, projected, cell, [&](Value px, const StepStates& s) {
    const Value sums = px + MatMul(s.h, cell.r, false, true);
    const auto part = [&](Gate gate) { return TakePart(sums, gate, cell.e.hidden); };
    const auto activated = [&](Gate gate, Value c) {
      return Activate(WithPeephole(cell, part(gate), gate, c), f, cell.clip);
    };
    const Value in = activated(kInput, s.c);
    const Value forget = coupled ? in * -1 + 1 : activated(kForget, s.c);
    const Value candidate = Activate(part(kCandidate), g, cell.clip);
    const Value added = in * candidate;
    const Value c = forget * s.c + added;
    const Value out = activated(kOutput, c);
    return StepStates{out * Activate(c, h), c};
  });
}

// The same as one operator.
RecurrentStates RunOperator(GraphBuilder& b, Value x, const RecurrentCell& cell) {
  const Value bias = cell.wb.valid() ? cell.wb + cell.rb : Value();
  const std::vector<Value> out =
      OpOutputs("lstm", {ProjectInput(x, cell, bias), cell.r, cell.h, cell.c},
                {{"gates", "iofg"}, {"reverse", cell.reverse}});
  return {ZeroWhereOver(b, cell, out[0]), LastState(b, cell, out[0], cell.h),
          LastState(b, cell, out[1], cell.c)};
}

Result<RecurrentStates> RunLstm(OnnxNode& n, Value x, const RecurrentCell& cell, bool coupled) {
  if (coupled || !IsPlain(cell, {"Sigmoid", "Tanh", "Tanh"})) return Unroll(n, x, cell, coupled);
  const RecurrentStates states = RunOperator(n.b(), x, cell);
  return states;
}

}  // namespace

Status ConvertLstm(OnnxNode& n) {
  const bool coupled = n.integer("input_forget", 0) != 0;
  RIDGE_ASSIGN_OR_RETURN(const RecurrentNode node,
                         ReadRecurrent(n, 4, {"Sigmoid", "Tanh", "Tanh"}, true));
  std::vector<RecurrentStates> states;
  for (const RecurrentCell& cell : node.cells) {
    RIDGE_ASSIGN_OR_RETURN(RecurrentStates s, RunLstm(n, node.x, cell, coupled));
    states.push_back(s);
  }
  return SetRecurrentOutputs(n, node, states);
}

}  // namespace ridge
