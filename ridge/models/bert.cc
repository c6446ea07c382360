// bert: BertForSequenceClassification of Hugging Face transformers, without dropout (Devlin et al.,
// NAACL 2019).
//
// Word, position and type embeddings, layer norm after attention and MLP, GELU, a tanh pooler over
// the first token and a classifier.  Names are Hugging Face's.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-12;
constexpr double kDeviation = 0.02;  // initializer_range
constexpr int64_t kPositions = 512, kTypes = 2;

Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name) {
  return Linear(b, x, out, name, {.deviation = kDeviation});
}

// [B,T,C] -> [B,H,T,D]
Value Heads(GraphBuilder& b, Value x, int64_t heads) {
  if (!b.ok()) return {};
  const Dims dims = x.dims();
  return Transpose(Reshape(x, {dims[0], dims[1], heads, dims[2] / heads}), {0, 2, 1, 3});
}

Value Attention(GraphBuilder& b, Value x, int64_t heads, const std::string& name) {
  if (!b.ok()) return {};
  const Dims dims = x.dims();
  const Value q = Heads(b, Dense(b, x, dims[2], name + ".self.query"), heads);
  const Value k = Heads(b, Dense(b, x, dims[2], name + ".self.key"), heads);
  const Value v = Heads(b, Dense(b, x, dims[2], name + ".self.value"), heads);
  const double scale = 1 / std::sqrt(static_cast<double>(dims[2] / heads));
  const Value y = OpOutputs("attention", {q, k, v}, {{"scale", scale}}, name + ".self")[0];
  const Value joined = Reshape(Transpose(y, {0, 2, 1, 3}), dims);
  const Value out = Dense(b, joined, dims[2], name + ".output.dense");
  return LayerNorm(b, out + x, kEpsilon, name + ".output.LayerNorm");
}

Value EncoderLayer(GraphBuilder& b, Value x, int64_t heads, int64_t inner,
                   const std::string& name) {
  x = Attention(b, x, heads, name + ".attention");
  if (!b.ok()) return {};
  const Value up = Gelu(Dense(b, x, inner, name + ".intermediate.dense"));
  const Value down = Dense(b, up, x.dims()[2], name + ".output.dense");
  return LayerNorm(b, down + x, kEpsilon, name + ".output.LayerNorm");
}

// The first `count` rows of a table NAME.weight.
Value FirstRows(GraphBuilder& b, int64_t count, int64_t rows, int64_t width, DType dtype,
                const std::string& name) {
  const Value table =
      b.Parameter(name + ".weight", {dtype, {rows, width}}, Init::Normal(kDeviation));
  return Slice(table, 0, 0, count);
}

Value Embeddings(GraphBuilder& b, const ModelArguments& arguments, const ModelOptions& options) {
  const std::string name = "bert.embeddings";
  const int64_t length = arguments["tokens"], width = arguments["hidden"];
  const Value tokens = TokenInput(b, options, length);
  Value x = Embedding(b, tokens, arguments["vocab"], width, kDeviation, options.dtype,
                      name + ".word_embeddings");
  x = x + FirstRows(b, 1, kTypes, width, options.dtype, name + ".token_type_embeddings");
  x = x + FirstRows(b, length, kPositions, width, options.dtype, name + ".position_embeddings");
  return LayerNorm(b, x, kEpsilon, name + ".LayerNorm");
}

Result<Graph> BuildBert(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("bert");
  const int64_t width = arguments["hidden"], heads = arguments["heads"];
  if (width % heads != 0) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("bert: hidden is {} and heads is {}; hidden must be a multiple of "
                              "heads",
                              width, heads));
  }
  Value x = Embeddings(b, arguments, options);
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer)
    x = EncoderLayer(b, x, heads, 4 * width, fmt::format("bert.encoder.layer.{}", layer));
  const Value first = Gather(x, b.Scalar(DType::kI64, 0), 1);
  const Value pooled = Tanh(Dense(b, first, width, "bert.pooler.dense"));
  ClassifierEnd(b, options, Dense(b, pooled, arguments["classes"], "classifier"));
  return b.Build();
}

// Public sizes (Turc et al., 2019; Devlin et al.), with the vocabulary of the uncased files.
std::vector<std::pair<std::string, int64_t>> Sizes(int64_t hidden, int64_t layers, int64_t heads) {
  return {{"vocab", 30522}, {"hidden", hidden}, {"layers", layers}, {"heads", heads}};
}

}  // namespace

BuiltinModel BertModel() {
  return {.name = "bert",
          .doc = "BERT for classification as in Hugging Face transformers, without dropout",
          .parameters = {{"vocab", "size of the vocabulary", 8000},
                         {"tokens", "tokens of a sample", 128, 1, kPositions},
                         {"hidden", "width", 256, 1, 65536},
                         {"layers", "layers", 4, 1, 1024},
                         {"heads", "attention heads", 4, 1, 1024},
                         {"classes", "classes", 2}},
          .variants = {{"bert_tiny", "BERT-Tiny", Sizes(128, 2, 2)},
                       {"bert_mini", "BERT-Mini", Sizes(256, 4, 4)},
                       {"bert_small", "BERT-Small", Sizes(512, 4, 8)},
                       {"bert_medium", "BERT-Medium", Sizes(512, 8, 8)},
                       {"bert_base", "BERT-Base", Sizes(768, 12, 12)},
                       {"bert_large", "BERT-Large", Sizes(1024, 24, 16)}},
          .build = BuildBert,
          .weight_names = BertWeightNames};
}

}  // namespace ridge
