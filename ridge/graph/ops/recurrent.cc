// lstm, gru, rnn and their gradients: the steps of a recurrent layer, made from the cells' table.
#include "ridge/graph/ops/shared/recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/keep_f32.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/slice.h"

namespace ridge {
namespace {

using Operands = std::span<const RecurrentOperand>;

// operands.size() when none has this name.
size_t IndexOf(Operands operands, std::string_view name) {
  const auto same = [&](const RecurrentOperand& operand) { return operand.name == name; };
  return static_cast<size_t>(std::find_if(operands.begin(), operands.end(), same) -
                             operands.begin());
}
bool Has(Operands operands, std::string_view name) {
  return IndexOf(operands, name) < operands.size();
}

size_t WeightOf(const RecurrentOp& op) { return op.Input("r"); }

// ---- types

// Input `r` is a float [blocks*hidden, hidden].
Status CheckWeight(const RecurrentOp& op, const OpCall& call) {
  const size_t r = WeightOf(op);
  const int64_t blocks = op.inputs[r].blocks;
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, r, "r"));
  const TensorType& type = call.inputs[r];
  if (type.rank() == 2 && type.dims[0] / blocks == type.dims[1] && type.dims[0] % blocks == 0)
    return Status();
  const std::string rows = blocks == 1 ? "hidden" : fmt::format("{}*hidden", blocks);
  return CallError(call, fmt::format("r is {}; it must be [{}, hidden]", TypeToString(type), rows));
}

// The sequence fits the weight; its seq_len and batch are the call's.
Status CheckSequence(const RecurrentOp& op, const OpCall& call) {
  const size_t i = op.Input(op.sequence);
  const TensorType &type = call.inputs[i], &r = call.inputs[WeightOf(op)];
  const int64_t width = op.inputs[i].blocks * r.dims[1];
  if (type.rank() == 3 && type.dims[2] == width && type.dtype == r.dtype) return Status();
  return CallError(call,
                   fmt::format("{} is {}; with r {} it must be {}[seq_len,batch,{}]", op.sequence,
                               TypeToString(type), TypeToString(r), DTypeName(r.dtype), width));
}

// `gates` is a permutation of the cell's letters, flags are 0 or 1.
Status CheckAttrs(const RecurrentCell& cell, const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "reverse"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, kKeepF32));
  if (cell.flag != nullptr) RIDGE_RETURN_IF_ERROR(CheckFlag(call, cell.flag));
  const std::string_view all = cell.gates;
  if (all.empty()) return Status();
  const std::string& gates = call.text("gates");
  if (std::is_permutation(gates.begin(), gates.end(), all.begin(), all.end())) return Status();
  return CallError(call, fmt::format("gates is \"{}\"; it must be the letters of \"{}\" in the "
                                     "order of the weight's blocks",
                                     gates, all));
}

TensorType TypeOf(const RecurrentOperand& operand, const SequenceExtents& e, DType dtype) {
  const int64_t width = operand.blocks * e.hidden;
  switch (operand.shape) {
    case RecurrentOperand::kSteps:
      return {dtype, {e.seq_len, e.batch, width}};
    case RecurrentOperand::kState:
      return {dtype, {e.batch, e.hidden}};
    case RecurrentOperand::kWeight:
      return {dtype, {width, e.hidden}};
    case RecurrentOperand::kVector:
      break;
  }
  return {dtype, {e.hidden}};
}

Result<std::vector<TensorType>> InferTypes(const RecurrentCell& cell, const RecurrentOp& op,
                                           const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckWeight(op, call));
  RIDGE_RETURN_IF_ERROR(CheckAttrs(cell, call));
  RIDGE_RETURN_IF_ERROR(CheckSequence(op, call));
  const SequenceExtents e = SequenceExtentsOf(op, call);
  const DType dtype = call.inputs[WeightOf(op)].dtype;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const RecurrentOperand& operand = op.inputs[i];
    if (!call.has_input(i) || i == WeightOf(op) || i == op.Input(op.sequence)) continue;
    RIDGE_RETURN_IF_ERROR(CheckType(call, i, operand.name, TypeOf(operand, e, dtype), operand.why));
  }
  std::vector<TensorType> outputs;
  for (const RecurrentOperand& operand : op.outputs) {
    outputs.push_back(TypeOf(operand, e, dtype));
    RIDGE_RETURN_IF_ERROR(CheckDims(outputs.back().dims));
  }
  return outputs;
}

// ---- cost, axes

// The products of all steps, and what each element of a state takes; all operands once.
Cost EstimateCost(const RecurrentOp& op, const OpCall& call) {
  const SequenceExtents e = SequenceExtentsOf(op, call);
  const int64_t blocks = op.inputs[WeightOf(op)].blocks;
  const double states = static_cast<double>(e.seq_len) * static_cast<double>(e.StateElements());
  const double flops = states * static_cast<double>(2 * blocks * e.hidden + op.flops);
  return StreamingCost(call, static_cast<int64_t>(std::min(flops, 0x1p62)));
}

// The batch: dimension 1 of the sequences, 0 of the states.
Axes BatchAxes(const OpCall& call) {
  constexpr size_t kFirstState = 2;
  Factor batch = Mapped(call, {1}, 1);
  for (size_t i = kFirstState; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && call.inputs[i].rank() == 2) batch.inputs[i] = 0;  // bias is a vector
  }
  return {batch};
}

// Of the gradient: the batch of every operand that has it.
Axes BatchAxesOf(const RecurrentOp& op, const OpCall& call) {
  const auto axis = [](const RecurrentOperand& operand) {
    if (operand.shape == RecurrentOperand::kSteps) return 1;
    return operand.shape == RecurrentOperand::kState ? 0 : Factor::kNone;
  };
  Factor batch = FactorOf(call, {}, {});
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i)) batch.inputs[i] = axis(op.inputs[i]);
  for (size_t k = 0; k < call.outputs.size(); ++k) batch.outputs[k] = axis(op.outputs[k]);
  batch.over = Factor::Over::kSum;
  return {batch};
}

// ---- gradient

// The states before each step, [seq_len, batch, hidden], from the first one and y.
Value StatesBefore(GraphBuilder& b, Value h, Value y, bool reverse) {
  if (!b.ok()) return {};
  const Dims d = y.dims();
  const Value first = ReshapeExactly(h, {1, d[1], d[2]});
  if (d[0] == 0) return y;
  if (d[0] == 1) return first;
  const int64_t begin = reverse ? 1 : 0;
  const Value others = Slice(y, 0, begin, begin + d[0] - 1, 1);
  std::vector<Value> parts = {first, others};
  if (reverse) std::swap(parts[0], parts[1]);
  return Concat(parts, 0);
}

// dr = sum over steps and batch of dinner^T h[t-1]: one product.
Value WeightGrad(GradBuilder& g, const RecurrentOp& forward, Value dinner) {
  GraphBuilder& b = g.b();
  const Value h = g.x(forward.Input("h")), y = g.y(forward.Output("y"));
  const Value before = StatesBefore(b, h, y, g.integer("reverse") != 0);
  if (!b.ok()) return {};
  const Dims d = dinner.dims(), s = before.dims();
  const Value rows = ReshapeExactly(dinner, {d[0] * d[1], d[2]});
  const Value states = ReshapeExactly(before, {s[0] * s[1], s[2]});
  return MatMulLike(g.attrs(), rows, states, /*transpose_a=*/true, /*transpose_b=*/false);
}

// The sum over steps and batch of the candidate's block of dinner.
Value BiasGrad(GradBuilder& g, Value dinner, int64_t hidden) {
  const int64_t begin = GateAt(g.text("gates"), 'n') * hidden;
  const Value block = Slice(dinner, 2, begin, begin + hidden, 1);
  return Sum(block, {0, 1});
}

// What an input of the gradient's operator is by its name.
Value InputOfGradient(GradBuilder& g, const RecurrentOp& forward, const RecurrentOperand& operand) {
  const std::string_view name = operand.name;
  if (Has(forward.inputs, name)) return g.x(forward.Input(name));
  if (Has(forward.outputs, name)) return g.y(forward.Output(name));
  const size_t dy = forward.Output(name.substr(1));
  return operand.optional && !g.has_dy(dy) ? Value() : g.dy(dy);
}

void Gradient(const RecurrentCell& cell, GradBuilder& g) {
  const RecurrentOp &forward = cell.forward, &back = cell.back;
  for (size_t i = 0; i < forward.outputs.size(); ++i) {
    const char* name = forward.outputs[i].name;
    if (!g.has_dy(i) || Has(back.inputs, fmt::format("d{}", name))) continue;
    g.b().Fail(Status(ErrorCode::kUnsupported,
                      fmt::format("{}: output '{}' has no gradient; it is kept for the gradient "
                                  "of y",
                                  forward.name, name)));
    return;
  }
  std::vector<Value> inputs;
  for (const RecurrentOperand& operand : back.inputs)
    inputs.push_back(InputOfGradient(g, forward, operand));
  const std::vector<Value> grads = OpOutputs(back.name, std::move(inputs), g.attrs());
  if (!g.b().ok()) return;
  const Value dinner = grads[back.Output(cell.inner_grad())];
  for (size_t i = 0; i < forward.inputs.size(); ++i) {
    const std::string_view name = forward.inputs[i].name;
    const std::string gradient = fmt::format("d{}", name);
    if (Has(back.outputs, gradient)) {
      g.dx(i) = grads[back.Output(gradient)];
    } else if (g.needs_dx(i)) {
      g.dx(i) =
          name == "r" ? WeightGrad(g, forward, dinner) : BiasGrad(g, dinner, g.x(i).dims()[0]);
    }
  }
}

// ---- references

// Calls f(row) for every sample of a step.
template <typename F>
void ForEachSample(const OpCall& call, const SequenceExtents& e, int64_t step,
                   std::span<const double* const> in, std::span<double* const> out, const F& f) {
  const int64_t now = e.TimeAt(step) * e.StateElements();
  const int64_t before = step == 0 ? -1 : e.TimeAt(step - 1) * e.StateElements();
  for (int64_t n = 0; n < e.batch; ++n) {
    const int64_t sample = n * e.hidden;
    f(RecurrentRow{.call = call,
                   .in = in,
                   .out = out,
                   .hidden = e.hidden,
                   .sample = sample,
                   .now = now + sample,
                   .before = before < 0 ? before : before + sample});
  }
}

void Reference(const RecurrentCell& cell, const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(cell.forward, call);
  for (int64_t step = 0; step < e.seq_len; ++step)
    ForEachSample(call, e, step, in, out, cell.forward.row);
}

// dh += d r, over the rows of r.
void AddInnerGrad(const double* r, int64_t rows, int64_t hidden, const double* d, double* dh) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < hidden; ++k) dh[k] += r[row * hidden + k] * d[row];
  }
}

// dh has what the next step handed back; the row leaves in it what does not come from the product.
void GradReference(const RecurrentCell& cell, const OpCall& call, std::span<const double* const> in,
                   std::span<double* const> out) {
  const RecurrentOp& op = cell.back;
  const SequenceExtents e = SequenceExtentsOf(op, call);
  for (size_t i = 0; i < op.outputs.size(); ++i)
    if (op.outputs[i].shape == RecurrentOperand::kState)
      std::fill_n(out[i], e.StateElements(), 0.0);
  const double *r = in[WeightOf(op)], *dy = in[op.Input("dy")];
  const double* dinner = out[op.Output(cell.inner_grad())];
  double* all_dh = out[op.Output("dh")];
  for (int64_t step = e.seq_len; step-- > 0;) {
    ForEachSample(call, e, step, in, out, [&](const RecurrentRow& row) {
      double* dh = all_dh + row.sample;
      for (int64_t k = 0; k < e.hidden; ++k) dh[k] += dy[row.now + k];
      op.row(row);
      AddInnerGrad(r, cell.blocks() * e.hidden, e.hidden, dinner + cell.blocks() * row.now, dh);
    });
  }
}

// ---- definitions

std::vector<std::string> NamesOf(Operands operands) {
  std::vector<std::string> names;
  for (const RecurrentOperand& operand : operands)
    names.push_back(fmt::format("{}{}", operand.name, operand.optional ? "?" : ""));
  return names;
}

AttrMap AttrsOf(const RecurrentCell& cell) {
  AttrMap attrs = {{"reverse", 0}, {kKeepF32, 0}};
  if (cell.blocks() > 1) attrs["gates"] = std::string(cell.gates);
  if (cell.flag != nullptr) attrs[cell.flag] = int64_t{0};
  return attrs;
}

template <const RecurrentCell& cell, RecurrentOp RecurrentCell::*op>
OpDef DefOf() {
  const RecurrentOp& of = cell.*op;
  OpDef def = {
      .name = of.name,
      .doc = of.doc,
      .input_names = NamesOf(of.inputs),
      .output_names = NamesOf(of.outputs),
      .attr_defaults = AttrsOf(cell),
      .cost_class = CostClass::kMatmul,
      .infer_types = [](const OpCall& call) { return InferTypes(cell, cell.*op, call); },
      .cost = [](const OpCall& call) { return EstimateCost(cell.*op, call); },
      .recompute = Recompute::kExpensive,
  };
  const auto [output, input] = of.in_place;
  if (output != nullptr)
    def.in_place = {{static_cast<int>(of.Output(output)), static_cast<int>(of.Input(input))}};
  return def;
}

template <const RecurrentCell& cell>
void AppendOps(std::vector<OpDef>& all) {
  OpDef forward = DefOf<cell, &RecurrentCell::forward>();
  forward.gradient = [](GradBuilder& g) { Gradient(cell, g); };
  forward.onnx = cell.onnx;
  forward.axes = BatchAxes;
  forward.reference = [](const OpCall& call, std::span<const double* const> in,
                         std::span<double* const> out) { Reference(cell, call, in, out); };
  all.push_back(std::move(forward));
  OpDef back = DefOf<cell, &RecurrentCell::back>();
  back.shared_axes = [](const OpCall& call) { return BatchAxesOf(cell.back, call); };
  back.reference = [](const OpCall& call, std::span<const double* const> in,
                      std::span<double* const> out) { GradReference(cell, call, in, out); };
  all.push_back(std::move(back));
}

}  // namespace

size_t RecurrentOp::Input(std::string_view operand) const { return IndexOf(inputs, operand); }
size_t RecurrentOp::Output(std::string_view operand) const { return IndexOf(outputs, operand); }

int64_t RecurrentCell::blocks() const {
  return std::max<int64_t>(static_cast<int64_t>(std::string_view(gates).size()), 1);
}
bool RecurrentCell::has_cells() const { return Has(forward.inputs, "c"); }
std::string_view RecurrentCell::inner_grad() const {
  return Has(back.outputs, "dinner") ? "dinner" : "dprojected";
}

SequenceExtents SequenceExtentsOf(const RecurrentOp& op, const OpCall& call) {
  const Dims& steps = call.inputs[op.Input(op.sequence)].dims;
  return {.seq_len = steps[0],
          .batch = steps[1],
          .hidden = call.inputs[WeightOf(op)].dims[1],
          .reverse = call.integer("reverse") != 0};
}

int64_t GateAt(const std::string& gates, char gate) {
  return static_cast<int64_t>(gates.find(gate));
}

std::vector<OpDef> RecurrentOps() {
  std::vector<OpDef> all;
  AppendOps<kLstmCell>(all);
  AppendOps<kGruCell>(all);
  AppendOps<kRnnCell>(all);
  return all;
}

}  // namespace ridge
