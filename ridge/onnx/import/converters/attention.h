// What the converters of attention share.
#pragma once
#include "ridge/onnx/import/node.h"

namespace ridge {

// x [B,T,heads*D] or [B,heads,T,D] as [B,heads,T,D]; fails on another rank or extent.
Result<Value> SplitHeads(OnnxNode& n, Value x, int64_t heads, const char* name);
// [B,H,T,D] -> [B,T,H*D].
Value MergeHeads(GraphBuilder& b, Value x);

// Each file's converters, for the family's table.
Status ConvertAttention(OnnxNode& n);               // attention.cc
Result<Value> ConvertFlexAttention(OnnxNode& n);    // attention_flex.cc
Result<Value> ConvertRotaryEmbedding(OnnxNode& n);  // attention_rotary.cc
Status ConvertLinearAttention(OnnxNode& n);         // attention_linear.cc
Status ConvertCausalConvWithState(OnnxNode& n);     // attention_linear.cc

}  // namespace ridge
