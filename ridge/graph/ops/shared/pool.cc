#include "ridge/graph/ops/shared/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Result<PoolGeometry> MakePoolGeometry(const OpCall& call, const Dims& x) {
  RIDGE_RETURN_IF_ERROR(CheckSpatialRank(call, x));
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "kernel", x.size() - 2, 1, kMaxWindow));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "ceil_mode"));
  PoolGeometry g;
  g.batch = x[0];
  g.channels = x[1];
  RIDGE_ASSIGN_OR_RETURN(g.window,
                         MakeWindow(call, std::span(x).subspan(2), call.integers("kernel"),
                                    call.integer("ceil_mode") != 0));
  if (g.window.taps() <= std::numeric_limits<int32_t>::max()) return g;
  return CallError(call, fmt::format("kernel is {}; it may have up to {} taps",
                                     DimsToString(call.integers("kernel")),
                                     std::numeric_limits<int32_t>::max()));
}

Dims PoolGeometry::output_dims() const {
  Dims dims = {batch, channels};
  window.AppendOutputs(dims);
  return dims;
}

PoolGeometry PoolGeometryOf(const OpCall& call) {
  const bool gradient = call.attrs.contains("input_dims");
  return *MakePoolGeometry(call, gradient ? call.integers("input_dims") : call.inputs[0].dims);
}

DType PoolIndexDType(const PoolGeometry& g) {
  return g.window.taps() <= 255 ? DType::kU8 : DType::kI32;
}

int64_t AvgPoolDivisor(const OpCall& call, const SlidingWindow& window, int64_t oz, int64_t oy,
                       int64_t ox) {
  const bool with_padding = call.integer("count_include_pad") != 0;
  const int64_t taps = window.z().TapsOfOutput(oz, with_padding) *
                       window.y().TapsOfOutput(oy, with_padding) *
                       window.x().TapsOfOutput(ox, with_padding);
  return std::max<int64_t>(taps, 1);
}

AttrMap PoolAttrDefaults() {
  const std::vector<int64_t> empty;
  return {{"kernel", empty},
          {"stride", empty},
          {"padding", empty},
          {"dilation", empty},
          {"ceil_mode", 0}};
}

}  // namespace ridge
