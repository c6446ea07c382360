#include "ridge/graph/ops/shared/conv_pool.h"

#include <fmt/format.h>

namespace ridge {

AttrMap PlainConvAttrs(const OpCall& call) {
  return {{"stride", {}}, {"padding", call.integers("padding")}, {"dilation", {}}, {"groups", 1}};
}

AttrMap PlainPoolAttrs() {
  AttrMap attrs = PoolAttrDefaults();
  attrs["kernel"] = std::vector<int64_t>{2, 2};
  attrs["stride"] = std::vector<int64_t>{2, 2};
  return attrs;
}

Result<ConvPoolGeometry> MakeConvPoolGeometry(const OpCall& call, const Dims& x, const Dims& w) {
  if (x.size() != 4) {
    return CallError(call, fmt::format("x has shape {}; it must have 4 dimensions, "
                                       "[batch, channels, height, width]",
                                       DimsToString(x)));
  }
  OpCall plain{.where = call.where, .inputs = {}, .outputs = {}, .attrs = PlainConvAttrs(call)};
  ConvPoolGeometry g;
  RIDGE_ASSIGN_OR_RETURN(g.conv, MakeConvGeometry(plain, x, w));
  plain.attrs = PlainPoolAttrs();
  RIDGE_ASSIGN_OR_RETURN(g.pool, MakePoolGeometry(plain, g.conv.output_dims()));
  return g;
}

}  // namespace ridge
