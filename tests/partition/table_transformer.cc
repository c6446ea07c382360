#include "tests/partition/table_transformer.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/builder.h"

namespace ridge {
namespace {

constexpr int64_t kBatch = 8, kLength = 8, kWidth = 16, kHeads = 4, kInner = 32, kVocab = 12;

Value Weight(GraphBuilder& b, const std::string& name, Dims dims) {
  return b.Parameter(name, {DType::kF64, std::move(dims)}, Init::Normal(0.3));
}

Value Normalized(Value x) { return Op("rms_norm", {x}); }

// [B,S,M] -> [B,H,S,D]
Value Heads(Value x) {
  const Value split = Reshape(x, {kBatch, kLength, kHeads, kWidth / kHeads});
  return Transpose(split, {0, 2, 1, 3});
}

Value Attended(GraphBuilder& b, Value n, const std::string& name) {
  const Value q = Heads(MatMul(n, Weight(b, name + ".q", {kWidth, kWidth})));
  const Value k = Heads(MatMul(n, Weight(b, name + ".k", {kWidth, kWidth})));
  const Value v = Heads(MatMul(n, Weight(b, name + ".v", {kWidth, kWidth})));
  const double scale = 1 / std::sqrt(static_cast<double>(kWidth / kHeads));
  const Value y = OpOutputs("attention", {q, k, v}, {{"scale", scale}, {"causal", 1}})[0];
  const Value joined = Reshape(Transpose(y, {0, 2, 1, 3}), {kBatch, kLength, kWidth});
  return MatMul(joined, Weight(b, name + ".out", {kWidth, kWidth}));
}

}  // namespace

Result<Graph> TableTransformer(bool positions) {
  GraphBuilder b("table");
  Value x = b.Input("x", {DType::kF64, {kBatch, kLength, kWidth}}, {"batch", "", ""});
  const Value label = b.Input("label", {DType::kI64, {kBatch, kLength}}, {"batch", ""});
  if (positions) x = x + Weight(b, "positions", {kLength, kWidth});
  for (int64_t layer = 0; layer < kTableLayers; ++layer) {
    const std::string name = fmt::format("layer.{}", layer);
    const Value attended = Attended(b, Normalized(x), name);
    x = x + attended;
    const Value up = MatMul(Normalized(x), Weight(b, name + ".up", {kWidth, kInner}));
    const Value down = MatMul(Relu(up), Weight(b, name + ".down", {kInner, kWidth}));
    x = x + down;
  }
  const Value logits = MatMul(Normalized(x), Weight(b, "head", {kWidth, kVocab}));
  b.Output("loss", Mean(Op("softmax_cross_entropy", {logits, label})));
  return b.Build();
}

}  // namespace ridge
