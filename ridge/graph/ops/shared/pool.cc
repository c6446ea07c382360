#include "ridge/graph/ops/shared/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Result<PoolGeometry> MakePoolGeometry(const OpCall& call, const Dims& x) {
  if (x.size() != 4) {
    return CallError(call, fmt::format("x has shape {}; it must have 4 dimensions, [batch, "
                                       "channels, height, width]",
                                       DimsToString(x)));
  }
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "kernel", 2, 1, kMaxWindow));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "ceil_mode"));
  const std::vector<int64_t>& kernel = call.integers("kernel");
  PoolGeometry g;
  g.batch = x[0];
  g.channels = x[1];
  RIDGE_ASSIGN_OR_RETURN(
      g.window, MakeWindow(call, x[2], x[3], kernel[0], kernel[1], call.integer("ceil_mode") != 0));
  return g;
}

PoolGeometry PoolGeometryOf(const OpCall& call) {
  const bool gradient = call.attrs.contains("input_dims");
  return *MakePoolGeometry(call, gradient ? call.integers("input_dims") : call.inputs[0].dims);
}

DType PoolIndexDType(const PoolGeometry& g) {
  return g.kernel_taps() <= 255 ? DType::kU8 : DType::kI32;
}

int64_t AvgPoolDivisor(const OpCall& call, const PoolGeometry& g, int64_t oy, int64_t ox) {
  const bool with_padding = call.integer("count_include_pad") != 0;
  const int64_t taps =
      g.window.y.TapsOfOutput(oy, with_padding) * g.window.x.TapsOfOutput(ox, with_padding);
  return std::max<int64_t>(taps, 1);
}

AttrMap PoolAttrDefaults() {
  return {{"kernel", std::vector<int64_t>{}},
          {"stride", std::vector<int64_t>{}},
          {"padding", std::vector<int64_t>{0, 0, 0, 0}},
          {"dilation", std::vector<int64_t>{1, 1}},
          {"ceil_mode", int64_t{0}}};
}

}  // namespace ridge
