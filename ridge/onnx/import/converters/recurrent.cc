// ONNX converters: RNN, GRU, LSTM.
#include "ridge/onnx/import/converters/recurrent.h"

#include "ridge/graph/ops/shared/slice.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

Value Affine(GraphBuilder& b, Value x, double factor, double shift) {
  return b.AddScalar(b.MulScalar(x, factor), shift);
}

Value Limit(GraphBuilder& b, Value x, double low, double high) {
  return b.Op("clip", {x}, {{"min", low}, {"max", high}});
}

}  // namespace

Value Activate(GraphBuilder& b, Value x, const RecurrentActivation& a, double limit) {
  if (limit > 0) x = Limit(b, x, -limit, limit);
  if (!b.ok()) return {};
  if (a.name == "Tanh") return b.Op("tanh", {x});
  if (a.name == "Sigmoid") return b.Op("sigmoid", {x});
  if (a.name == "Relu") return b.Relu(x);
  if (a.name == "Affine") return Affine(b, x, a.alpha, a.beta);
  if (a.name == "LeakyRelu") return b.Op("leaky_relu", {x}, {{"alpha", a.alpha}});
  if (a.name == "ScaledTanh") return b.MulScalar(b.Op("tanh", {b.MulScalar(x, a.beta)}), a.alpha);
  if (a.name == "HardSigmoid")
    return b.Op("hard_sigmoid", {x}, {{"alpha", a.alpha}, {"beta", a.beta}});
  if (a.name == "Elu") return b.Op("elu", {x}, {{"alpha", a.alpha}});
  if (a.name == "Softsign") return b.Div(x, b.AddScalar(b.Op("abs", {x}), 1));
  if (a.name == "Softplus") return b.Op("softplus", {x});
  const DType dtype = b.type(x).dtype;  // ThresholdedRelu
  return b.Where(b.Op("greater", {x, b.Scalar(dtype, a.alpha)}), x, b.Scalar(dtype, 0));
}

namespace {

// The two biases together; invalid without B.
Value BothBiases(GraphBuilder& b, const RecurrentCell& cell) {
  return cell.wb.valid() ? b.Add(cell.wb, cell.rb) : Value();
}

// The steps as one operator.
Result<RecurrentStates> RunOperator(OnnxNode& n, const char* op, const RecurrentCell& cell,
                                    std::vector<Value> inputs, AttrMap attrs) {
  GraphBuilder& b = n.b();
  attrs.emplace("reverse", int64_t{cell.reverse});
  const std::vector<Value> out = b.OpOutputs(op, std::move(inputs), std::move(attrs));
  RIDGE_RETURN_IF_ERROR(n.status());
  return RecurrentStates{ZeroWhereOver(b, cell, out[0]), LastState(b, cell, out[0], cell.h), {}};
}

// h' = f(x w^T + h r^T + wb + rb)
Result<RecurrentStates> RunRnn(OnnxNode& n, Value x, const RecurrentCell& cell) {
  GraphBuilder& b = n.b();
  const Value projected = ProjectInput(b, x, cell, BothBiases(b, cell));
  // Relu may grow without end where a sequence is over.
  const bool relu = IsPlain(cell, {"Relu"}) && !cell.lengths.valid();
  if (relu || IsPlain(cell, {"Tanh"}))
    return RunOperator(n, "rnn", cell, {projected, cell.r, cell.h}, {{"relu", int64_t{relu}}});
  return WalkSteps(n, projected, cell, [&](Value px, const StepStates& s) {
    const Value sum = b.Add(px, b.MatMul(s.h, cell.r, false, true));
    return StepStates{Activate(b, sum, cell.activations[0], cell.clip), {}};
  });
}

// Weights of gates [first, last) of r, and their biases.
Value TakeGates(GraphBuilder& b, Value x, int64_t first, int64_t last, int64_t hidden) {
  return TakeRange(b, x, 0, first * hidden, last * hidden);
}

// With linear_before_reset the recurrent bias of the candidate is inside what the reset gate
// multiplies, so it is not added to the input's product.
Value GruInputBias(GraphBuilder& b, const RecurrentCell& cell, bool linear_before_reset) {
  if (!cell.wb.valid() || !linear_before_reset) return BothBiases(b, cell);
  const int64_t hidden = cell.e.hidden;
  const Value gates =
      b.Add(TakeGates(b, cell.wb, 0, 2, hidden), TakeGates(b, cell.rb, 0, 2, hidden));
  return b.Op("concat", {gates, TakeGates(b, cell.wb, 2, 3, hidden)}, {{"axis", int64_t{0}}});
}

// z, r = f(..); n = g(x wn^T + (r * h) rn^T + ..), or g(x wn^T + r * (h rn^T + rbn) + wbn);
// h' = (1 - z) * n + z * h
Result<RecurrentStates> RunGru(OnnxNode& n, Value x, const RecurrentCell& cell, bool linear) {
  GraphBuilder& b = n.b();
  const int64_t hidden = cell.e.hidden;
  const RecurrentActivation &f = cell.activations[0], &g = cell.activations[1];
  const Value projected = ProjectInput(b, x, cell, GruInputBias(b, cell, linear));
  const Value bias = cell.rb.valid() ? TakeGates(b, cell.rb, 2, 3, hidden) : Value();
  if (linear && IsPlain(cell, {"Sigmoid", "Tanh"})) {
    return RunOperator(n, "gru", cell, {projected, cell.r, cell.h, bias},
                       {{"gates", std::string("zrn")}});
  }
  const Value r_gates = TakeGates(b, cell.r, 0, 2, hidden);
  const Value r_new = TakeGates(b, cell.r, 2, 3, hidden);
  return WalkSteps(n, projected, cell, [&](Value px, const StepStates& s) {
    const Value from_h = b.MatMul(s.h, linear ? cell.r : r_gates, false, true);
    const auto gate = [&](int64_t i) {
      const Value sum = b.Add(TakePart(b, px, i, hidden), TakePart(b, from_h, i, hidden));
      return Activate(b, sum, f, cell.clip);
    };
    const Value z = gate(0), r = gate(1);
    Value inner;
    if (linear) {
      inner = TakePart(b, from_h, 2, hidden);
      inner = b.Mul(r, bias.valid() ? b.Add(inner, bias) : inner);
    } else {
      inner = b.MatMul(b.Mul(r, s.h), r_new, false, true);
    }
    const Value fresh = Activate(b, b.Add(TakePart(b, px, 2, hidden), inner), g, cell.clip);
    return StepStates{b.Add(fresh, b.Mul(z, b.Sub(s.h, fresh))), {}};
  });
}

}  // namespace

Status ConvertRnn(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const RecurrentNode node, ReadRecurrent(n, 1, {"Tanh"}, false));
  std::vector<RecurrentStates> states;
  for (const RecurrentCell& cell : node.cells) {
    RIDGE_ASSIGN_OR_RETURN(RecurrentStates s, RunRnn(n, node.x, cell));
    states.push_back(s);
  }
  return SetRecurrentOutputs(n, node, states);
}

Status ConvertGru(OnnxNode& n) {
  const bool linear = n.integer("linear_before_reset", 0) != 0;
  RIDGE_ASSIGN_OR_RETURN(const RecurrentNode node, ReadRecurrent(n, 3, {"Sigmoid", "Tanh"}, false));
  std::vector<RecurrentStates> states;
  for (const RecurrentCell& cell : node.cells) {
    RIDGE_ASSIGN_OR_RETURN(RecurrentStates s, RunGru(n, node.x, cell, linear));
    states.push_back(s);
  }
  return SetRecurrentOutputs(n, node, states);
}

namespace {

constexpr OnnxConverter kConverters[] = {
    {"", "GRU", ConvertGru},
    {"", "LSTM", ConvertLstm},
    {"", "RNN", ConvertRnn},
};

}  // namespace

std::span<const OnnxConverter> OnnxRecurrentConverters() { return kConverters; }

}  // namespace ridge
