#include "ridge/graph/ops/shared/sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/slice.h"

namespace ridge {

SequenceExtents SequenceExtentsOf(const OpCall& call, size_t sequence, size_t r) {
  const Dims& steps = call.inputs[sequence].dims;
  return {.seq_len = steps[0],
          .batch = steps[1],
          .hidden = call.inputs[r].dims[1],
          .reverse = call.integer("reverse") != 0};
}

Axes RecurrentAxes(const OpCall& call) {
  constexpr size_t kFirstState = 2;
  Factor batch = Mapped(call, {1}, 1);
  for (size_t i = kFirstState; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && call.inputs[i].rank() == 2) batch.inputs[i] = 0;  // bias is a vector
  }
  return {batch};
}

Status CheckWeight(const OpCall& call, size_t r, int64_t gates) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, r, "r"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "reverse"));
  const TensorType& type = call.inputs[r];
  if (type.rank() == 2 && type.dims[0] / gates == type.dims[1] && type.dims[0] % gates == 0)
    return Status();
  const std::string rows = gates == 1 ? "hidden" : fmt::format("{}*hidden", gates);
  return CallError(call, fmt::format("r is {}; it must be [{}, hidden]", TypeToString(type), rows));
}

Status CheckSteps(const OpCall& call, size_t i, const char* name, int64_t columns, size_t r) {
  const TensorType& type = call.inputs[i];
  const int64_t width = columns * call.inputs[r].dims[1];
  if (type.rank() == 3 && type.dims[2] == width && type.dtype == call.inputs[r].dtype)
    return Status();
  return CallError(call, fmt::format("{} is {}; with r {} it must be {}[seq_len,batch,{}]", name,
                                     TypeToString(type), TypeToString(call.inputs[r]),
                                     DTypeName(call.inputs[r].dtype), width));
}

Status CheckSequence(const OpCall& call, int64_t gates) {
  RIDGE_RETURN_IF_ERROR(CheckWeight(call, 1, gates));
  RIDGE_RETURN_IF_ERROR(CheckSteps(call, 0, "projected", gates, 1));
  const SequenceExtents e = SequenceExtentsOf(call, 0, 1);
  return CheckType(call, 2, "h", {call.inputs[1].dtype, {e.batch, e.hidden}}, "one state a sample");
}

Status CheckGates(const OpCall& call, const std::string& all) {
  const std::string& gates = call.text("gates");
  if (std::is_permutation(gates.begin(), gates.end(), all.begin(), all.end())) return Status();
  return CallError(call, fmt::format("gates is \"{}\"; it must be the letters of \"{}\" in the "
                                     "order of the weight's blocks",
                                     gates, all));
}

int64_t GateAt(const std::string& gates, char gate) {
  return static_cast<int64_t>(gates.find(gate));
}

void AddInner(const double* r, int64_t rows, int64_t hidden, const double* h, double* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < hidden; ++k) sums[row] += r[row * hidden + k] * h[k];
  }
}

void AddInnerGrad(const double* r, int64_t rows, int64_t hidden, const double* d, double* dh) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < hidden; ++k) dh[k] += r[row * hidden + k] * d[row];
  }
}

Cost SequenceCost(const OpCall& call, const SequenceExtents& e, int64_t gates, int64_t each) {
  const double states = static_cast<double>(e.seq_len) * static_cast<double>(e.StateElements());
  const double flops = states * static_cast<double>(2 * gates * e.hidden + each);
  return StreamingCost(call, static_cast<int64_t>(std::min(flops, 0x1p62)));
}

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

Value RecurrentWeightGrad(GraphBuilder& b, Value dinner, Value h, Value y, bool reverse) {
  const Value before = StatesBefore(b, h, y, reverse);
  if (!b.ok()) return {};
  const Dims d = dinner.dims(), s = before.dims();
  const Value rows = ReshapeExactly(dinner, {d[0] * d[1], d[2]});
  const Value states = ReshapeExactly(before, {s[0] * s[1], s[2]});
  return MatMul(rows, states, /*transpose_a=*/true, /*transpose_b=*/false);
}

}  // namespace ridge
