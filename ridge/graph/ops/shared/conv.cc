#include "ridge/graph/ops/shared/conv.h"

#include <fmt/format.h>

namespace ridge {
namespace {

Status CheckRanks(const OpCall& call, const Dims& x, const Dims& w) {
  RIDGE_RETURN_IF_ERROR(CheckSpatialRank(call, x));
  if (w.size() == x.size()) return Status();
  return CallError(call, fmt::format("w has shape {}; it must have {} dimensions, as x has: "
                                     "[outputs, inputs / groups, kernel extents]",
                                     DimsToString(w), x.size()));
}

Status CheckChannels(const OpCall& call, const Dims& x, const Dims& w) {
  const int64_t groups = call.integer("groups");
  if (groups < 1 || groups > kMaxWindow) {
    return CallError(call,
                     fmt::format("groups is {}; it must be from 1 to {}", groups, kMaxWindow));
  }
  if (x[1] != w[1] * groups) {
    return CallError(call, fmt::format("x has {} channels but w has {} inputs in each of {} "
                                       "groups; {} must equal {} * {}",
                                       x[1], w[1], groups, x[1], w[1], groups));
  }
  if (w[0] % groups == 0) return Status();
  return CallError(call,
                   fmt::format("w has {} outputs, which {} groups do not divide", w[0], groups));
}

}  // namespace

Result<ConvGeometry> MakeConvGeometry(const OpCall& call, const Dims& x, const Dims& w) {
  RIDGE_RETURN_IF_ERROR(CheckRanks(call, x, w));
  RIDGE_RETURN_IF_ERROR(CheckChannels(call, x, w));
  for (size_t d = 2; d < w.size(); ++d) {
    if (w[d] < 1 || w[d] > kMaxWindow) {
      return CallError(call, fmt::format("w has shape {}; its kernel extents must be from 1 to {}",
                                         DimsToString(w), kMaxWindow));
    }
  }
  ConvGeometry g;
  g.batch = x[0];
  g.groups = call.integer("groups");
  g.group_inputs = w[1];
  g.group_outputs = w[0] / g.groups;
  RIDGE_ASSIGN_OR_RETURN(g.window, MakeWindow(call, std::span(x).subspan(2),
                                              std::span(w).subspan(2), /*ceil_mode=*/false));
  return g;
}

Dims ConvGeometry::output_dims() const {
  Dims dims = {batch, outputs()};
  window.AppendOutputs(dims);
  return dims;
}

ConvGeometry ConvGeometryOf(const OpCall& call) {
  return *MakeConvGeometry(call, call.inputs[0].dims, call.inputs[1].dims);
}

ConvGeometry GradInputGeometryOf(const OpCall& call) {
  return *MakeConvGeometry(call, call.integers("input_dims"), call.inputs[1].dims);
}

ConvGeometry GradWeightGeometryOf(const OpCall& call) {
  return *MakeConvGeometry(call, call.inputs[0].dims, call.integers("weight_dims"));
}

}  // namespace ridge
