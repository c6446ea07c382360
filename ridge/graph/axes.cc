#include "ridge/graph/axes.h"

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

int64_t Extent(const TensorType& type, int axis) { return type.dims[static_cast<size_t>(axis)]; }

Factor Unmapped(const OpCall& call) {
  return {std::vector<int>(call.inputs.size(), Factor::kNone),
          std::vector<int>(call.outputs.size(), Factor::kNone)};
}

// Whether every input that has the factor has one row of it for each of the output.
bool GoesByRow(const OpCall& call, const Factor& factor) {
  const int64_t extent = Extent(call.outputs[0], factor.outputs[0]);
  for (size_t i = 0; i < factor.inputs.size(); ++i) {
    if (factor.inputs[i] == Factor::kNone) continue;
    const int64_t here = Extent(call.inputs[i], factor.inputs[i]);
    if (here != extent && here != 1) return false;
  }
  return true;
}

}  // namespace

Axes AxesOf(const OpDef& op, const OpCall& call) {
  if (op.axes != nullptr) return op.axes(call);
  return op.elementwise != nullptr ? PointwiseAxes(call) : Axes();
}

Axes SharedAxesOf(const OpDef& op, const OpCall& call) {
  return op.shared_axes != nullptr ? op.shared_axes(call) : AxesOf(op, call);
}

Factor Mapped(const OpCall& call, std::initializer_list<int> inputs, int output) {
  Factor factor = Unmapped(call);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.has_input(i)) factor.inputs[i] = *(inputs.begin() + i);
  }
  std::fill(factor.outputs.begin(), factor.outputs.end(), output);
  return factor;
}

Factor FactorOf(const OpCall& call, std::initializer_list<int> inputs,
                std::initializer_list<int> outputs, Factor::Over over) {
  Factor factor = Mapped(call, inputs, Factor::kNone);
  std::copy_n(outputs.begin(), std::min(outputs.size(), factor.outputs.size()),
              factor.outputs.begin());
  factor.over = over;
  return factor;
}

Factor Summed(const OpCall& call, int axis, Factor::Over over) {
  Factor factor = Unmapped(call);
  factor.inputs[0] = axis;
  factor.over = over;
  return factor;
}

int BroadcastAxis(const OpCall& call, size_t i, int output_axis) {
  if (!call.has_input(i)) return Factor::kNone;
  return std::max(output_axis - (call.outputs[0].rank() - call.inputs[i].rank()), Factor::kNone);
}

Axes PointwiseAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < call.outputs[0].rank(); ++d) {
    Factor factor = Mapped(call, {}, d);
    for (size_t i = 0; i < call.inputs.size(); ++i) factor.inputs[i] = BroadcastAxis(call, i, d);
    axes.push_back(std::move(factor));
  }
  return axes;
}

Axes FirstAxis(const OpCall& call) { return AxesBelow(call, 1); }

Axes AxesBelow(const OpCall& call, int end) {
  Axes axes;
  for (int d = 0; d < std::min(end, call.inputs[0].rank()); ++d)
    axes.push_back(Mapped(call, {d}, d));
  return axes;
}

Axes AxesBut(const OpCall& call, int axis) {
  Axes axes = AxesBelow(call, call.inputs[0].rank());
  axes.erase(axes.begin() + axis);
  return axes;
}

Axes AxesBeforeAttr(const OpCall& call) { return AxesBelow(call, CallAxis(call)); }

Axes AxesBesidesAttr(const OpCall& call) { return AxesBut(call, CallAxis(call)); }

std::optional<SlicedCall> CallForRows(const OpDef& op, const OpCall& call, const Rows& rows) {
  if (op.draws) return std::nullopt;
  const Axes axes = AxesOf(op, call);
  const auto factor = std::find_if(axes.begin(), axes.end(), [&](const Factor& f) {
    return f.outputs[0] == rows.axis && GoesByRow(call, f);
  });
  if (factor == axes.end()) return std::nullopt;
  SlicedCall sliced{{call.inputs.size(), std::nullopt}, call.attrs};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int axis = factor->inputs[i];
    if (axis != Factor::kNone && Extent(call.inputs[i], axis) != 1)
      sliced.inputs[i] = Rows{axis, rows.first, rows.count};
  }
  if (op.dims_attr != nullptr) {
    Dims dims = call.outputs[0].dims;
    dims[static_cast<size_t>(rows.axis)] = rows.count;
    sliced.attrs[op.dims_attr] = std::move(dims);
  }
  if (factor->offset_attr != nullptr)
    sliced.attrs[factor->offset_attr] = call.integer(factor->offset_attr) + rows.first;
  return sliced;
}

}  // namespace ridge
