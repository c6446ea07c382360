// First half of the fuse pass: pointwise steps become the epilogue of a matmul or conv.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// relu(matmul(a, b)) -> matmul(a, b, epilogue="relu")
// add(conv(x, w), r) -> conv(x, w, _, r, epilogue="add"), where r has the type of the result
// ... if the values between have no other readers.  Steps: relu gelu silu tanh sigmoid add.
Result<Graph> FuseEpilogues(Graph graph);

}  // namespace ridge
