// Where in x the winners of max_pool lie.
#pragma once
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {

// i64, the shape of `index` (the second output of max_pool): the place of each winner in the whole
// array x [B, C, ..], row-major, or with `column_major` the place in it where the planes [D, H, W]
// are stored with the first dimension fastest, as MaxPool of ONNX has it.
// What it gives for a window wholly in the padding names no element of that window.
Value MaxPoolPositions(GraphBuilder& b, Value index, const PoolGeometry& g, bool column_major);

}  // namespace ridge
