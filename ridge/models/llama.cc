// llama: a decoder as LLaMA (Touvron et al., 2023): RMS norm, rotary positions, grouped queries
// (Ainslie et al., EMNLP 2023), SwiGLU (Shazeer, 2020), no biases.
//
// Names are Hugging Face's (LlamaForCausalLM).  Starting values: normal 0.02.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kDeviation = 0.02;

struct Sizes {
  int64_t width, heads, kv_heads, inner, head;
  double epsilon;
  Value visible = {};  // which tokens see which, beside the causal order
};

Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name) {
  return Linear(b, x, out, name, {.bias = false, .deviation = kDeviation});
}

Value RmsNorm(GraphBuilder& b, Value x, double epsilon, const std::string& name) {
  if (!b.ok()) return {};
  const Value scale =
      b.Parameter(name + ".weight", {x.dtype(), {x.dims().back()}}, Init::Constant(1));
  return OpOutputs("rms_norm", {x, scale}, {{"epsilon", epsilon}}, name)[0];
}

// cos and sin of position * theta^(-2i/D), each [length, D/2].
struct RotaryTables {
  Value cos, sin;
};

RotaryTables MakeTables(GraphBuilder& b, DType dtype, int64_t length, int64_t head, double theta) {
  const int64_t pairs = head / 2;
  Tensor cos({dtype, {length, pairs}}), sin({dtype, {length, pairs}});
  for (int64_t position = 0; position < length; ++position) {
    for (int64_t i = 0; i < pairs; ++i) {
      const double rate =
          std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head));
      const double angle = static_cast<double>(position) * rate;
      StoreFromDouble(dtype, cos.mutable_data(), position * pairs + i, std::cos(angle));
      StoreFromDouble(dtype, sin.mutable_data(), position * pairs + i, std::sin(angle));
    }
  }
  return {b.Constant(std::move(cos), "cos"), b.Constant(std::move(sin), "sin")};
}

Value Attention(GraphBuilder& b, Value x, const Sizes& sizes, const RotaryTables& tables,
                const std::string& name) {
  if (!b.ok()) return {};
  const auto rotated = [&](const char* part, int64_t heads) {
    const Value y = SplitHeads(Dense(b, x, heads * sizes.head, name + part), heads);
    return Op("rotary_embedding", {y, tables.cos, tables.sin}, {}, name + ".rotary");
  };
  const Value q = rotated(".q_proj", sizes.heads), k = rotated(".k_proj", sizes.kv_heads);
  const Value v =
      SplitHeads(Dense(b, x, sizes.kv_heads * sizes.head, name + ".v_proj"), sizes.kv_heads);
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.head));
  const Value y = OpOutputs("attention", {q, k, v, sizes.visible},
                            {{"scale", scale}, {"causal", true}}, name + ".attention")[0];
  return Dense(b, JoinHeads(y), sizes.width, name + ".o_proj");
}

// down(silu(gate(x)) * up(x))
Value Mlp(GraphBuilder& b, Value x, const Sizes& sizes, const std::string& name) {
  const Value gate = Dense(b, x, sizes.inner, name + ".gate_proj");
  const Value up = Dense(b, x, sizes.inner, name + ".up_proj");
  return Dense(b, Silu(gate) * up, sizes.width, name + ".down_proj");
}

Status CheckSizes(const std::string& model, const ModelArguments& arguments) {
  const auto multiple = [&](const char* of, const char* by) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: {} is {} and {} is {}; {} must be a multiple of {}", model, of,
                              arguments[of], by, arguments[by], of, by));
  };
  if (arguments["hidden"] % arguments["heads"] != 0) return multiple("hidden", "heads");
  if (arguments["heads"] % arguments["kv_heads"] != 0) return multiple("heads", "kv_heads");
  const int64_t head = arguments["hidden"] / arguments["heads"];
  if (head % 2 == 0) return Status();
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: a head has {} numbers, hidden / heads; they must be even, as they "
                            "turn in pairs",
                            model, head));
}

Result<Graph> BuildLlama(const ModelArguments& arguments, const ModelOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckSizes(arguments.model(), arguments));
  GraphBuilder b(arguments.model());
  const int64_t length = arguments["context"], heads = arguments["heads"];
  const int64_t width = arguments["hidden"], vocab = arguments["vocab"];
  Sizes sizes = {width,
                 heads,
                 arguments["kv_heads"],
                 arguments["inner"],
                 width / heads,
                 arguments.Real("epsilon")};
  const Value tokens = TokenInput(b, options, length);
  // Scores depend on distances alone, so positions need no new begin.
  if (arguments["documents"] == 1) sizes.visible = SameText(b, PositionInput(b, options, length));
  const Value table = b.Parameter("model.embed_tokens.weight", {options.dtype, {vocab, width}},
                                  Init::Normal(kDeviation));
  Value x = Op("gather", {table, tokens}, {}, "model.embed_tokens");
  const RotaryTables tables = MakeTables(b, options.dtype, length, sizes.head,
                                         static_cast<double>(arguments["rope_theta"]));
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer) {
    const std::string name = fmt::format("model.layers.{}", layer);
    const Value normed = RmsNorm(b, x, sizes.epsilon, name + ".input_layernorm");
    x = x + Attention(b, normed, sizes, tables, name + ".self_attn");
    const Value after = RmsNorm(b, x, sizes.epsilon, name + ".post_attention_layernorm");
    x = x + Mlp(b, after, sizes, name + ".mlp");
  }
  x = RmsNorm(b, x, sizes.epsilon, "model.norm");
  const bool tied = arguments["tied"] == 1;
  LanguageModelEnd(b, options,
                   tied ? Op("matmul", {x, table}, {{"transpose_b", 1}}, "lm_head")
                        : Dense(b, x, vocab, "lm_head"));
  return b.Build();
}

using Defaults = std::vector<std::pair<std::string, int64_t>>;

}  // namespace

BuiltinModel LlamaModel() {
  return {.name = "llama",
          .doc = "a LLaMA-like decoder: RMS norm, rotary positions, grouped queries, SwiGLU",
          .parameters = {{"vocab", "size of the vocabulary", 5000},
                         {"context", "tokens of a sample", 256, 1, 65536},
                         {"hidden", "width", 384, 2, 65536},
                         {"layers", "blocks", 6, 1, 1024},
                         {"heads", "attention heads", 6, 1, 1024},
                         {"kv_heads", "heads of keys and values", 2, 1, 1024},
                         {"inner", "width of the MLP", 1024, 1, 1 << 20},
                         {"rope_theta", "base of the rotary angles", 10000, 1, 1 << 30},
                         {"tied", "1: the head is the embedding", 0, 0, 1},
                         {"documents", "1: an input position_ids, which keeps texts of a row apart",
                          0, 0, 1},
                         {.name = "epsilon",
                          .doc = "that RMS norms add to the mean square",
                          .real = RealRange{1e-5, 0, 1}}},
          .variants = {{"tinyllama_1b", "TinyLlama, 1.1 G",
                        Defaults{{"vocab", 32000},
                                 {"context", 2048},
                                 {"hidden", 2048},
                                 {"layers", 22},
                                 {"heads", 32},
                                 {"kv_heads", 4},
                                 {"inner", 5632}}},
                       {"llama2_7b", "Llama 2, 6.7 G",
                        Defaults{{"vocab", 32000},
                                 {"context", 4096},
                                 {"hidden", 4096},
                                 {"layers", 32},
                                 {"heads", 32},
                                 {"kv_heads", 32},
                                 {"inner", 11008}}},
                       {"llama3_8b", "Llama 3, 8.0 G",
                        Defaults{{"vocab", 128256},
                                 {"context", 8192},
                                 {"hidden", 4096},
                                 {"layers", 32},
                                 {"heads", 32},
                                 {"kv_heads", 8},
                                 {"inner", 14336},
                                 {"rope_theta", 500000}}}},
          .build = BuildLlama,
          .weight_names = LlamaWeightNames};
}

}  // namespace ridge
