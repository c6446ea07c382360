// ONNX converter: attention whose scores and probabilities are changed by subgraphs.
//
// Without subgraphs it is our operator `attention`; with them it is composed.
#include <fmt/format.h>

#include <cmath>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/ops/shared/attention.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converters/attention.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

Result<DType> SoftmaxType(OnnxNode& n, DType q) {
  const DType otherwise = q == DType::kF64 ? DType::kF64 : DType::kF32;
  if (!n.has_attr("softmax_precision")) return otherwise;
  const int64_t number = n.integer("softmax_precision", 1);
  const std::optional<DType> dtype = DTypeFromOnnx(static_cast<int>(number));
  if (dtype && IsFloat(*dtype)) return *dtype;
  return n.Error(fmt::format("softmax_precision is {}; it must be a float type", number));
}

// x through the subgraph of this name; x itself when the node has none.
Result<Value> Modified(OnnxNode& n, const char* name, Value x) {
  RIDGE_RETURN_IF_ERROR(n.status());
  const onnx::GraphProto* body = n.subgraph(name);
  if (body == nullptr) return x;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> results, n.importer().Inline(*body, {x}));
  RIDGE_RETURN_IF_ERROR(n.status());
  if (results.size() == 1 && results[0].type() == x.type()) return results[0];
  return n.Error(fmt::format("{} must give one output of type {}", name, TypeToString(x.type())));
}

}  // namespace

Result<Value> ConvertFlexAttention(OnnxNode& n) {
  GraphBuilder& b = n.b();
  const Value q = n[0], k = n[1], v = n[2];
  RIDGE_RETURN_IF_ERROR(n.status());
  const TensorType type = q.type();
  const double head_dim = type.rank() == 4 ? static_cast<double>(type.dims[3]) : 1;
  const AttrMap attrs = {{"scale", n.number("scale", 1 / std::sqrt(std::max(head_dim, 1.0)))},
                         {"causal", 0},
                         {"causal_offset", 0},
                         {"softcap", 0.0}};
  RIDGE_RETURN_IF_ERROR(CheckAttentionOperands(n.where(), {q, k, v}, attrs));
  RIDGE_ASSIGN_OR_RETURN(const DType precision, SoftmaxType(n, type.dtype));
  if (n.subgraph("score_mod") == nullptr && n.subgraph("prob_mod") == nullptr) {
    return OpOutputs("attention", {q, k, v}, attrs)[0];
  }
  const Value scores = ComposeAttentionScores(b, q, k, {}, attrs).scaled;
  RIDGE_ASSIGN_OR_RETURN(const Value changed, Modified(n, "score_mod", Cast(scores, precision)));
  const Value p = Softmax(changed);
  RIDGE_ASSIGN_OR_RETURN(const Value weights, Modified(n, "prob_mod", p));
  const Value y = MultiplyGrouped(weights, Cast(v, precision), /*transpose_v=*/false);
  return Cast(y, type.dtype);
}

}  // namespace ridge
