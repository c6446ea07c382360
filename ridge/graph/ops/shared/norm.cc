#include "ridge/graph/ops/shared/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Status CheckChannelDims(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  if (call.inputs[0].rank() >= 2) return Status();
  return CallError(call, fmt::format("x is {}; it must have at least 2 dimensions, [batch, "
                                     "channels, ...]",
                                     TypeToString(call.inputs[0])));
}

Status CheckChannels(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckChannelDims(call));
  return CheckNumber(call, "epsilon", std::numeric_limits<double>::infinity());
}

Status CheckPerChannel(const OpCall& call, size_t i, const char* name) {
  const TensorType& x = call.inputs[0];
  return CheckType(call, i, name, {StatisticDType(x.dtype), {x.dims[1]}},
                   "one number for each channel of x");
}

Moments ChannelMoments(const double* x, const AxisView& view, int64_t channel) {
  Moments moments;
  const auto count = static_cast<double>(std::max<int64_t>(view.outer * view.inner, 1));
  ForEachInChannel(view, channel, [&](int64_t i) { moments.mean += x[i]; });
  moments.mean /= count;
  ForEachInChannel(view, channel, [&](int64_t i) {
    const double distance = x[i] - moments.mean;
    moments.variance += distance * distance;
  });
  moments.variance /= count;
  return moments;
}

int64_t ElementsPerChannel(const Dims& x) {
  const AxisView view = ViewAxis(x, 1);
  return std::max<int64_t>(view.outer * view.inner, 1);
}

Value OverChannels(Value v, Value x) {
  Dims dims(x.dims().size(), 1);
  dims[1] = -1;  // what is left: C, which as 0 would mean another thing to reshape
  return Reshape(Cast(v, x.dtype()), dims);
}

Value SumOverAllButChannels(Value v) {
  std::vector<int64_t> axes = {0};
  for (int64_t d = 2; d < v.rank(); ++d) axes.push_back(d);
  return Sum(Cast(v, StatisticDType(v.dtype())), axes);
}

Dims LeadingDims(const Dims& dims, int axis) { return {dims.begin(), dims.begin() + axis}; }

Dims TrailingDims(const Dims& dims, int axis) { return {dims.begin() + axis, dims.end()}; }

}  // namespace ridge
