// ONNX converters: RNN, GRU, LSTM.
//
// The input's product with W is one matmul over all steps; the steps themselves run inside the
// cell's operator (lstm, gru, rnn) where it computes what the node says, else they are unrolled.
#include "ridge/onnx/import/converters/recurrent.h"

#include "ridge/onnx/import/converter.h"

namespace ridge {

Value Activate(Value x, const RecurrentActivation& a, double limit) {
  if (limit > 0) x = Op("clip", {x}, {{"min", -limit}, {"max", limit}});
  if (a.name == "Tanh") return Tanh(x);
  if (a.name == "Sigmoid") return Sigmoid(x);
  if (a.name == "Relu") return Relu(x);
  if (a.name == "Affine") return x * a.alpha + a.beta;
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

using Direction = RecurrentDirection;

// The cell's operator on one direction: what follows projected, r and h, and attributes.
struct OperatorCall {
  std::vector<Value> inputs;
  AttrMap attrs;
};

// What a node of ONNX says beyond the cell's record.
struct CellImport {
  const RecurrentCell& cell;
  Value (*input_bias)(const Direction&);  // of the product with W
  bool (*is_operator)(const RecurrentCell&, const Direction&);
  OperatorCall (*call)(const Direction&);
  RecurrentStep (*steps)(const Direction&);
};

// The two biases together; invalid without B.
Value BothBiases(const Direction& d) { return d.wb.valid() ? d.wb + d.rb : Value(); }

// ---- RNN: h' = f(x w^T + h r^T + wb + rb)

// Relu may grow without end where a sequence is over.
bool IsRelu(const Direction& d) {
  constexpr const char* kRelu[] = {"Relu"};
  return IsPlain(d, kRelu) && !d.lengths.valid();
}

bool IsRnn(const RecurrentCell& cell, const Direction& d) {
  return IsRelu(d) || IsPlain(d, cell.onnx_activations);
}

OperatorCall RnnCall(const Direction& d) { return {{}, {{"relu", IsRelu(d)}}}; }

RecurrentStep RnnSteps(const Direction& d) {
  return [&d](Value px, const StepStates& s) {
    const Value sum = px + MatMul(s.h, d.r, false, true);
    return StepStates{Activate(sum, d.activations[0], d.clip), {}};
  };
}

// ---- GRU: z, r = f(..); n = g(x wn^T + (r * h) rn^T + ..), or with linear_before_reset
// g(x wn^T + r * (h rn^T + rbn) + wbn); h' = (1 - z) * n + z * h

// With linear_before_reset the recurrent bias of the candidate is inside what the reset gate
// multiplies, so it is not added to the input's product.
Value GruInputBias(const Direction& d) {
  if (!d.wb.valid() || !d.linear_before_reset) return BothBiases(d);
  const auto take = [&](Value x, int64_t first, int64_t last) {
    return TakeBlocks(x, 0, first, last, d.e.hidden);
  };
  const Value recurrent = take(d.rb, 0, 2);
  const Value gates = take(d.wb, 0, 2) + recurrent;
  return Concat({gates, take(d.wb, 2, 3)}, 0);
}

Value CandidateBias(const Direction& d) {
  return d.rb.valid() ? TakeBlocks(d.rb, 0, 2, 3, d.e.hidden) : Value();
}

bool IsGru(const RecurrentCell& cell, const Direction& d) {
  return d.linear_before_reset && IsPlain(d, cell.onnx_activations);
}

OperatorCall GruCall(const Direction& d) { return {{CandidateBias(d)}, {}}; }

// What the candidate reads of the state.
std::function<Value(Value h, Value from_h, Value r)> GruInner(const Direction& d) {
  const int64_t hidden = d.e.hidden;
  if (!d.linear_before_reset) {
    const Value r_new = TakeBlocks(d.r, 0, 2, 3, hidden);
    return [=](Value h, Value, Value r) { return MatMul(r * h, r_new, false, true); };
  }
  const Value bias = CandidateBias(d);
  return [=](Value, Value from_h, Value r) {
    const Value inner = TakeBlocks(from_h, 1, 2, 3, hidden);
    return r * (bias.valid() ? inner + bias : inner);
  };
}

RecurrentStep GruSteps(const Direction& d) {
  const int64_t hidden = d.e.hidden;
  const Value r_gates = d.linear_before_reset ? d.r : TakeBlocks(d.r, 0, 0, 2, hidden);
  return [&d, hidden, r_gates, inner = GruInner(d)](Value px, const StepStates& s) {
    const Value from_h = MatMul(s.h, r_gates, false, true);
    const auto gate = [&](int64_t i) {
      const Value recurrent = TakeBlocks(from_h, 1, i, i + 1, hidden);
      const Value sum = TakeBlocks(px, 1, i, i + 1, hidden) + recurrent;
      return Activate(sum, d.activations[0], d.clip);
    };
    const Value z = gate(0), r = gate(1);
    const Value sum = TakeBlocks(px, 1, 2, 3, hidden) + inner(s.h, from_h, r);
    const Value fresh = Activate(sum, d.activations[1], d.clip);
    return StepStates{fresh + z * (s.h - fresh), {}};
  };
}

// ---- LSTM: i, f = f(.. + p * c); c' = f * c + i * g(..); o = f(.. + p * c'); h' = o * h(c')

bool IsLstm(const RecurrentCell& cell, const Direction& d) {
  return !d.input_forget && IsPlain(d, cell.onnx_activations);
}

OperatorCall LstmCall(const Direction& d) { return {{d.c}, {}}; }

RecurrentStep LstmSteps(const Direction& d) {
  enum Gate : int64_t { kInput, kOutput, kForget, kCandidate };  // as ONNX orders them
  return [&d](Value px, const StepStates& s) {
    const Value sums = px + MatMul(s.h, d.r, false, true);
    const auto part = [&](Value x, Gate gate) {
      return TakeBlocks(x, static_cast<int>(x.dims().size()) - 1, gate, gate + 1, d.e.hidden);
    };
    const auto gate = [&](Gate which, Value c) {
      Value x = part(sums, which);
      if (d.peepholes.valid()) x = x + c * part(d.peepholes, which);
      return Activate(x, d.activations[0], d.clip);
    };
    const Value in = gate(kInput, s.c);
    const Value forget = d.input_forget ? in * -1 + 1 : gate(kForget, s.c);
    const Value candidate = Activate(part(sums, kCandidate), d.activations[1], d.clip);
    const Value added = in * candidate;
    const Value c = forget * s.c + added;
    const Value out = gate(kOutput, c);
    return StepStates{out * Activate(c, d.activations[2]), c};
  };
}

// ---- all

RecurrentStates RunOperator(GraphBuilder& b, const CellImport& of, Value projected,
                            const Direction& d) {
  OperatorCall call = of.call(d);
  call.inputs.insert(call.inputs.begin(), {projected, d.r, d.h});
  call.attrs["reverse"] = int64_t{d.reverse};
  if (of.cell.blocks() > 1) call.attrs["gates"] = std::string(of.cell.onnx_gates);
  const RecurrentOp& op = of.cell.forward;
  const std::vector<Value> out = OpOutputs(op.name, std::move(call.inputs), std::move(call.attrs));
  return StatesOf(b, d, out[op.Output("y")],
                  of.cell.has_cells() ? out[op.Output("cells")] : Value());
}

Result<RecurrentStates> Run(OnnxNode& n, const CellImport& of, Value x, const Direction& d) {
  const Value projected = Op("matmul", {x, d.w, of.input_bias(d)}, {{"transpose_b", 1}});
  if (!of.is_operator(of.cell, d)) return WalkSteps(n, projected, d, of.steps(d));
  return RunOperator(n.b(), of, projected, d);
}

constexpr CellImport kGru = {kGruCell, GruInputBias, IsGru, GruCall, GruSteps};
constexpr CellImport kLstm = {kLstmCell, BothBiases, IsLstm, LstmCall, LstmSteps};
constexpr CellImport kRnn = {kRnnCell, BothBiases, IsRnn, RnnCall, RnnSteps};

template <const CellImport& of>
Status Convert(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const RecurrentNode node, ReadRecurrent(n, of.cell));
  std::vector<RecurrentStates> states;
  for (const Direction& d : node.directions) {
    RIDGE_ASSIGN_OR_RETURN(const RecurrentStates s, Run(n, of, node.x, d));
    states.push_back(s);
  }
  return SetRecurrentOutputs(n, node, states);
}

constexpr OnnxConverter kConverters[] = {
    {"", "GRU", Convert<kGru>}, {"", "LSTM", Convert<kLstm>}, {"", "RNN", Convert<kRnn>}};

}  // namespace

std::span<const OnnxConverter> OnnxRecurrentConverters() { return kConverters; }

}  // namespace ridge
