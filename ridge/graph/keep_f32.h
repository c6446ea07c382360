// What products say to mixed precision.
//
//   keep_f32=1       --precision leaves their operands and results in f32.  Products that an
//                    operator's gradient emits for a node take its value.
//   narrow_result=1  the result may be stored in 16 bits though outputs are computed from it, as
//                    logits are.  Of matmul and conv; their gradients have it not.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/graph/value.h"

namespace ridge {

inline constexpr char kKeepF32[] = "keep_f32";
inline constexpr char kNarrowResult[] = "narrow_result";

// Whether the operator has `keep_f32`: matmul, convolutions, attention, recurrent layers.
bool IsKeepable(const OpDef& op);

// Whether mixed precision could give this node operands of 16 bits, or values beside them.
bool IsF32Product(const Graph& graph, const Node& node);

bool KeepsF32(const AttrMap& attrs);
bool HasNarrowResult(const AttrMap& attrs);

// As MatMul(), with keep_f32 as `of` has it.
Value MatMulLike(const AttrMap& of, Value a, Value b, bool transpose_a, bool transpose_b);

// Whether the graph has products of f32 and each of them is kept.
bool KeepsEachProduct(const Graph& graph);

}  // namespace ridge
