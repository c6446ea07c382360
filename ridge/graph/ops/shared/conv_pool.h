// conv_pool and its gradient: a convolution of stride 1 whose result only a max_pool of 2x2 windows
// side by side reads.  What they mean is said by the plain operators.
#pragma once
#include "ridge/graph/ops/shared/conv.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {

// The place of a window whose maximum relu cut off; the tap numbers are 0 to 3.
inline constexpr int kNoWinner = 4;

struct ConvPoolGeometry {
  ConvGeometry conv;
  PoolGeometry pool;
};

// The attributes of the plain operators, from the `padding` of a conv_pool or its gradient.
AttrMap PlainConvAttrs(const OpCall& call);
AttrMap PlainPoolAttrs();

// x [B,C,H,W] by w [O,C,KH,KW], pooled.
Result<ConvPoolGeometry> MakeConvPoolGeometry(const OpCall& call, const Dims& x, const Dims& w);

}  // namespace ridge
