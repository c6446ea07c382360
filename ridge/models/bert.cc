// bert: BertForSequenceClassification of Hugging Face transformers, without dropout (Devlin et al.,
// NAACL 2019).
//
// Word, position and type embeddings, layer norm after attention and MLP, and a classifier over a
// pooled vector: the tanh pooler's of the first token, the first token itself, or the mean of the
// tokens that the mask shows, as sentence-transformers makes it.  Names are Hugging Face's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/encoders.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kDeviation = 0.02;  // initializer_range

// What the layers share.
struct Net {
  int64_t heads, inner;
  double epsilon;
  std::string activation;
  Value visible;  // bool [B,1,1,T], which keys all queries see; none: all
};

Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name) {
  return Linear(b, x, out, name, {.deviation = kDeviation});
}

Value Attention(GraphBuilder& b, Value x, const Net& net, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t heads = net.heads;
  const Dims dims = x.dims();
  const Value q = SplitHeads(Dense(b, x, dims[2], name + ".self.query"), heads);
  const Value k = SplitHeads(Dense(b, x, dims[2], name + ".self.key"), heads);
  const Value v = SplitHeads(Dense(b, x, dims[2], name + ".self.value"), heads);
  const double scale = 1 / std::sqrt(static_cast<double>(dims[2] / heads));
  const Value y =
      OpOutputs("attention", {q, k, v, net.visible}, {{"scale", scale}}, name + ".self")[0];
  const Value joined = Reshape(Transpose(y, {0, 2, 1, 3}), dims);
  const Value out = Dense(b, joined, dims[2], name + ".output.dense");
  return LayerNorm(b, out + x, net.epsilon, name + ".output.LayerNorm");
}

Value Activate(Value x, const std::string& activation) {
  if (activation == "relu") return Relu(x);
  if (activation == "silu") return Silu(x);
  const char* form = activation == "gelu_tanh" ? "tanh" : "none";
  return Op("gelu", {x}, {{"approximate", std::string(form)}});
}

Value EncoderLayer(GraphBuilder& b, Value x, const Net& net, const std::string& name) {
  x = Attention(b, x, net, name + ".attention");
  if (!b.ok()) return {};
  const Value up = Activate(Dense(b, x, net.inner, name + ".intermediate.dense"), net.activation);
  const Value down = Dense(b, up, x.dims()[2], name + ".output.dense");
  return LayerNorm(b, down + x, net.epsilon, name + ".output.LayerNorm");
}

// The first `count` rows of a table NAME.weight.
Value FirstRows(GraphBuilder& b, int64_t count, int64_t rows, int64_t width, DType dtype,
                const std::string& name) {
  const Value table =
      b.Parameter(name + ".weight", {dtype, {rows, width}}, Init::Normal(kDeviation));
  return Slice(table, 0, 0, count);
}

int64_t TokensOf(const ModelArguments& arguments) {
  constexpr int64_t kUsual = 128;
  if (arguments["tokens"] > 0) return arguments["tokens"];
  return std::min(kUsual, arguments["positions"]);
}

Value Embeddings(GraphBuilder& b, const ModelArguments& arguments, const ModelOptions& options) {
  const std::string name = "bert.embeddings";
  const int64_t length = TokensOf(arguments), width = arguments["hidden"];
  const Value tokens = TokenInput(b, options, length);
  Value x = Embedding(b, tokens, arguments["vocab"], width, kDeviation, options.dtype,
                      name + ".word_embeddings");
  x = x +
      FirstRows(b, 1, arguments["types"], width, options.dtype, name + ".token_type_embeddings");
  x = x + FirstRows(b, length, arguments["positions"], width, options.dtype,
                    name + ".position_embeddings");
  return LayerNorm(b, x, arguments.Real("epsilon"), name + ".LayerNorm");
}

// Of the tokens that the mask shows; of a sample without any, zeros.
Value MeanOfTokens(GraphBuilder& b, Value x, Value mask) {
  if (!mask.valid()) return Op("reduce_mean", {x}, {{"axes", {1}}, {"keep_dims", 0}}, "pooling");
  if (!b.ok()) return {};
  const DType dtype = x.dtype();
  const Dims dims = mask.dims();
  const Value seen = Cast(NotEqual(mask, 0), dtype);
  const Value sum = Sum(x * Reshape(seen, {dims[0], dims[1], 1}), {1}, /*keep_dims=*/false);
  const Value count = Maximum(Sum(seen, {1}, /*keep_dims=*/true), b.Scalar(dtype, 1));
  return Op("div", {sum, count}, {}, "pooling");
}

// [B,T,C] -> [B,C]
Value Pooled(GraphBuilder& b, Value x, Value mask, const std::string& pooling) {
  if (!b.ok()) return {};
  if (pooling == "mean") return MeanOfTokens(b, x, mask);
  const Value first = Gather(x, b.Scalar(DType::kI64, 0), 1);
  if (pooling == "first") return first;
  return Tanh(Dense(b, first, x.dims()[2], "bert.pooler.dense"));
}

Result<Graph> BuildBert(const ModelArguments& arguments, const ModelOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckBertSizes(arguments));
  GraphBuilder b("bert");
  const Value pooled = BertFeatures(b, arguments, options);
  ClassifierEnd(b, options, Dense(b, pooled, arguments["classes"], "classifier"));
  return b.Build();
}

// Public sizes (Turc et al., 2019; Devlin et al.), with the vocabulary of the uncased files.
std::vector<std::pair<std::string, int64_t>> Sizes(int64_t hidden, int64_t layers, int64_t heads) {
  return {{"vocab", 30522}, {"hidden", hidden}, {"layers", layers}, {"heads", heads}};
}

}  // namespace

std::vector<ModelParameter> BertParameters() {
  return {{"vocab", "size of the vocabulary", 8000},
          {"tokens", "tokens of a sample; 0: 128, or all positions if fewer", 0, 0, 65536},
          {"hidden", "width", 256, 1, 65536},
          {"layers", "layers", 4, 1, 1024},
          {"heads", "attention heads", 4, 1, 1024},
          {"classes", "classes", 2},
          {"inner", "width of the MLP; 0: 4 x hidden", 0, 0},
          {"positions", "positions that have an embedding", 512},
          {"types", "token types that have an embedding", 2},
          {"mask", "1: an input attention_mask, whose 0s hide tokens", 0, 0, 1},
          {.name = "pooling",
           .doc = "what the head reads: pooler, first (token), mean (of the tokens)",
           .choices = {"pooler", "first", "mean"}},
          {.name = "activation",
           .doc = "of the MLP: gelu, gelu_tanh, relu, silu",
           .choices = {"gelu", "gelu_tanh", "relu", "silu"}},
          {.name = "epsilon",
           .doc = "that layer norms add to the variance",
           .real = RealRange{1e-12, 0, 1}}};
}

Status CheckBertSizes(const ModelArguments& arguments) {
  const int64_t width = arguments["hidden"], heads = arguments["heads"];
  if (width % heads != 0) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: hidden is {} and heads is {}; hidden must be a multiple of "
                              "heads",
                              arguments.model(), width, heads));
  }
  const int64_t tokens = TokensOf(arguments), positions = arguments["positions"];
  if (tokens <= positions) return Status();
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: tokens is {}; it must be at most positions, {}. hint: "
                            "tokens={}, or length={} behind the data",
                            arguments.model(), tokens, positions, positions, positions));
}

Value BertFeatures(GraphBuilder& b, const ModelArguments& arguments, const ModelOptions& options) {
  const int64_t width = arguments["hidden"], inner = arguments["inner"];
  Value x = Embeddings(b, arguments, options);
  Net net = {arguments["heads"],
             inner == 0 ? 4 * width : inner,
             arguments.Real("epsilon"),
             arguments.Choice("activation"),
             {}};
  const Dims dims = {options.batch, TokensOf(arguments)};
  Value mask;
  if (arguments["mask"] == 1) {
    mask = b.Input("attention_mask", {DType::kI64, dims}, {"batch", ""});
    net.visible = Reshape(NotEqual(mask, 0), {0, 1, 1, dims[1]});
  }
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer)
    x = EncoderLayer(b, x, net, fmt::format("bert.encoder.layer.{}", layer));
  return Pooled(b, x, mask, arguments.Choice("pooling"));
}

BuiltinModel BertModel() {
  return {.name = "bert",
          .doc = "BERT for classification as in Hugging Face transformers, without dropout",
          .parameters = BertParameters(),
          .variants = {{"bert_tiny", "BERT-Tiny", Sizes(128, 2, 2)},
                       {"bert_mini", "BERT-Mini", Sizes(256, 4, 4)},
                       {"bert_small", "BERT-Small", Sizes(512, 4, 8)},
                       {"bert_medium", "BERT-Medium", Sizes(512, 8, 8)},
                       {"bert_base", "BERT-Base", Sizes(768, 12, 12)},
                       {"bert_large", "BERT-Large", Sizes(1024, 24, 16)}},
          .length = "tokens",
          .build = BuildBert,
          .weight_names = BertWeightNames};
}

}  // namespace ridge
