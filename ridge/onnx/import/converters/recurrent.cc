// ONNX converters: RNN, GRU, LSTM.
#include "ridge/onnx/import/converters/recurrent.h"

#include "ridge/graph/ops/shared/slice.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

Value Affine(Value x, double factor, double shift) { return x * factor + shift; }

Value Limit(Value x, double low, double high) {
  return Op("clip", {x}, {{"min", low}, {"max", high}});
}

}  // namespace

Value Activate(Value x, const RecurrentActivation& a, double limit) {
  if (limit > 0) x = Limit(x, -limit, limit);
  if (a.name == "Tanh") return Tanh(x);
  if (a.name == "Sigmoid") return Sigmoid(x);
  if (a.name == "Relu") return Relu(x);
  if (a.name == "Affine") return Affine(x, a.alpha, a.beta);
  if (a.name == "LeakyRelu") return Op("leaky_relu", {x}, {{"alpha", a.alpha}});
  if (a.name == "ScaledTanh") return Tanh(x * a.beta) * a.alpha;
  if (a.name == "HardSigmoid")
    return Op("hard_sigmoid", {x}, {{"alpha", a.alpha}, {"beta", a.beta}});
  if (a.name == "Elu") return Op("elu", {x}, {{"alpha", a.alpha}});
  if (a.name == "Softsign") return x / (Abs(x) + 1);
  if (a.name == "Softplus") return Softplus(x);
  const Value zero = ScalarLike(x, 0);
  return Where(x > a.alpha, x, zero);  // ThresholdedRelu
}

namespace {

// The two biases together; invalid without B.
Value BothBiases(const RecurrentCell& cell) {
  return cell.wb.valid() ? cell.wb + cell.rb : Value();
}

// The steps as one operator.
Result<RecurrentStates> RunOperator(OnnxNode& n, const char* op, const RecurrentCell& cell,
                                    std::vector<Value> inputs, AttrMap attrs) {
  GraphBuilder& b = n.b();
  attrs.emplace("reverse", int64_t{cell.reverse});
  const std::vector<Value> out = OpOutputs(op, std::move(inputs), std::move(attrs));
  return RecurrentStates{ZeroWhereOver(b, cell, out[0]), LastState(b, cell, out[0], cell.h), {}};
}

// h' = f(x w^T + h r^T + wb + rb)
Result<RecurrentStates> RunRnn(OnnxNode& n, Value x, const RecurrentCell& cell) {
  const Value projected = ProjectInput(x, cell, BothBiases(cell));
  // Relu may grow without end where a sequence is over.
  const bool relu = IsPlain(cell, {"Relu"}) && !cell.lengths.valid();
  if (relu || IsPlain(cell, {"Tanh"}))
    return RunOperator(n, "rnn", cell, {projected, cell.r, cell.h}, {{"relu", relu}});
  return WalkSteps(n, projected, cell, [&](Value px, const StepStates& s) {
    const Value sum = px + MatMul(s.h, cell.r, false, true);
    return StepStates{Activate(sum, cell.activations[0], cell.clip), {}};
  });
}

// Weights of gates [first, last) of r, and their biases.
Value TakeGates(Value x, int64_t first, int64_t last, int64_t hidden) {
  return Slice(x, 0, first * hidden, last * hidden, 1);
}

// With linear_before_reset the recurrent bias of the candidate is inside what the reset gate
// multiplies, so it is not added to the input's product.
Value GruInputBias(const RecurrentCell& cell, bool linear_before_reset) {
  if (!cell.wb.valid() || !linear_before_reset) return BothBiases(cell);
  const int64_t hidden = cell.e.hidden;
  const Value recurrent = TakeGates(cell.rb, 0, 2, hidden);
  const Value gates = TakeGates(cell.wb, 0, 2, hidden) + recurrent;
  return Concat({gates, TakeGates(cell.wb, 2, 3, hidden)}, 0);
}

// z, r = f(..); n = g(x wn^T + (r * h) rn^T + ..), or g(x wn^T + r * (h rn^T + rbn) + wbn);
// h' = (1 - z) * n + z * h
Result<RecurrentStates> RunGru(OnnxNode& n, Value x, const RecurrentCell& cell, bool linear) {
  const int64_t hidden = cell.e.hidden;
  const RecurrentActivation &f = cell.activations[0], &g = cell.activations[1];
  const Value projected = ProjectInput(x, cell, GruInputBias(cell, linear));
  const Value bias = cell.rb.valid() ? TakeGates(cell.rb, 2, 3, hidden) : Value();
  if (linear && IsPlain(cell, {"Sigmoid", "Tanh"})) {
    return RunOperator(n, "gru", cell, {projected, cell.r, cell.h, bias}, {{"gates", "zrn"}});
  }
  const Value r_gates = TakeGates(cell.r, 0, 2, hidden);
  const Value r_new = TakeGates(cell.r, 2, 3, hidden);
  return WalkSteps(n, projected, cell, [&](Value px, const StepStates& s) {
    const Value from_h = MatMul(s.h, linear ? cell.r : r_gates, false, true);
    const auto gate = [&](int64_t i) {
      const Value recurrent = TakePart(from_h, i, hidden);
      const Value sum = TakePart(px, i, hidden) + recurrent;
      return Activate(sum, f, cell.clip);
    };
    const Value z = gate(0), r = gate(1);
    Value inner;
    if (linear) {
      inner = TakePart(from_h, 2, hidden);
      inner = r * (bias.valid() ? inner + bias : inner);
    } else {
      inner = MatMul(r * s.h, r_new, false, true);
    }
    const Value fresh = Activate(TakePart(px, 2, hidden) + inner, g, cell.clip);
    return StepStates{fresh + z * (s.h - fresh), {}};
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
