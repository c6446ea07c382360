// Encoders that several models read: up to their features, without a head.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/builder.h"
#include "ridge/models/model.h"

namespace ridge {

// image [B,C,H,W] -> [B,512] or [B,2048], the mean over places; `net`: "resnet18" to "resnet152".
Value ResNetFeatures(GraphBuilder& b, Value image, const std::string& net);

// What BertFeatures reads of its arguments.
std::vector<ModelParameter> BertParameters();
Status CheckBertSizes(const ModelArguments& arguments);
// Input `tokens` i64[B,T], with mask=1 also `attention_mask` i64[B,T] -> [B,hidden], pooled.
// REQUIRES: CheckBertSizes(arguments).ok().
Value BertFeatures(GraphBuilder& b, const ModelArguments& arguments, const ModelOptions& options);

}  // namespace ridge
