// ONNX converter: LSTM.
#include "ridge/onnx/import/converters/recurrent.h"

namespace ridge {
namespace {

enum Gate : int64_t { kInput, kOutput, kForget, kCandidate };  // as ONNX orders them

// x + peephole `i` of [input, output, forget] times c.
Value WithPeephole(GraphBuilder& b, const RecurrentCell& cell, Value x, int64_t i, Value c) {
  if (!cell.peepholes.valid()) return x;
  return b.Add(x, b.Mul(c, TakePart(b, cell.peepholes, i, cell.e.hidden)));
}

// i, f = f(.. + p * c); c' = f * c + i * g(..); o = f(.. + p * c'); h' = o * h(c')
Result<RecurrentStates> Unroll(OnnxNode& n, Value x, const RecurrentCell& cell, bool coupled) {
  GraphBuilder& b = n.b();
  const Value bias = cell.wb.valid() ? b.Add(cell.wb, cell.rb) : Value();
  const Value projected = ProjectInput(b, x, cell, bias);
  const RecurrentActivation &f = cell.activations[0], &g = cell.activations[1],
                            &h = cell.activations[2];
  return WalkSteps(n, projected, cell, [&](Value px, const StepStates& s) {
    const Value sums = b.Add(px, b.MatMul(s.h, cell.r, false, true));
    const auto part = [&](Gate gate) { return TakePart(b, sums, gate, cell.e.hidden); };
    const auto activated = [&](Gate gate, Value c) {
      return Activate(b, WithPeephole(b, cell, part(gate), gate, c), f, cell.clip);
    };
    const Value in = activated(kInput, s.c);
    const Value forget = coupled ? b.AddScalar(b.MulScalar(in, -1), 1) : activated(kForget, s.c);
    const Value candidate = Activate(b, part(kCandidate), g, cell.clip);
    const Value c = b.Add(b.Mul(forget, s.c), b.Mul(in, candidate));
    const Value out = activated(kOutput, c);
    return StepStates{b.Mul(out, Activate(b, c, h)), c};
  });
}

// The same as one operator.
RecurrentStates RunOperator(GraphBuilder& b, Value x, const RecurrentCell& cell) {
  const Value bias = cell.wb.valid() ? b.Add(cell.wb, cell.rb) : Value();
  const std::vector<Value> out =
      b.OpOutputs("lstm", {ProjectInput(b, x, cell, bias), cell.r, cell.h, cell.c},
                  {{"gates", std::string("iofg")}, {"reverse", int64_t{cell.reverse}}});
  if (!b.ok()) return {};
  return {ZeroWhereOver(b, cell, out[0]), LastState(b, cell, out[0], cell.h),
          LastState(b, cell, out[1], cell.c)};
}

Result<RecurrentStates> RunLstm(OnnxNode& n, Value x, const RecurrentCell& cell, bool coupled) {
  if (coupled || !IsPlain(cell, {"Sigmoid", "Tanh", "Tanh"})) return Unroll(n, x, cell, coupled);
  const RecurrentStates states = RunOperator(n.b(), x, cell);
  RIDGE_RETURN_IF_ERROR(n.status());
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
