// whisper_tiny to whisper_large: WhisperForConditionalGeneration of Hugging Face transformers
// (Radford et al., ICML 2023), without dropout.
//
// Two convolutions and an encoder read a log-mel spectrogram; a decoder with cross-attention
// writes tokens.  Pre-norm blocks, GELU, sinusoids as the encoder's positions, a head that is the
// embedding.  Names are Hugging Face's.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kDeviation = 0.02;

struct DenseBias {
  bool bias = true;
};
Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name, DenseBias with = {}) {
  return Linear(b, x, out, name, {.bias = with.bias, .deviation = kDeviation});
}

// x [B,C,W] -> gelu of [B,channels,ceil(W / stride)]: three taps, one column of zeros on each side.
Value ConvGelu(GraphBuilder& b, Value x, int64_t channels, int64_t stride,
               const std::string& name) {
  if (!b.ok()) return {};
  const DType dtype = x.dtype();
  const Value weight =
      b.Parameter(name + ".weight", {dtype, {channels, x.dims()[1], 3}}, Init::Normal(kDeviation));
  const Value bias = b.Parameter(name + ".bias", {dtype, {channels}}, Init::Zeros());
  return Gelu(Op("conv", {x, weight, bias},
                 {{"stride", std::vector<int64_t>{stride}}, {"padding", {1, 1}}}, name));
}

// [length, width]: sin(position * rate) in the first half of the columns, cos in the second; rates
// fall from 1 to 1 / 10000.
Value Sinusoids(GraphBuilder& b, DType dtype, int64_t length, int64_t width) {
  const int64_t half = width / 2;
  Tensor table({dtype, {length, width}});
  for (int64_t position = 0; position < length; ++position) {
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(half - 1);
      const double angle = static_cast<double>(position) * std::pow(10000.0, -exponent);
      StoreFromDouble(dtype, table.mutable_data(), position * width + i, std::sin(angle));
      StoreFromDouble(dtype, table.mutable_data(), position * width + half + i, std::cos(angle));
    }
  }
  return b.Constant(std::move(table), "model.encoder.embed_positions");
}

// Queries of x [B,T,C] over keys and values of `memory` [B,S,C].
Value Attention(GraphBuilder& b, Value x, Value memory, int64_t heads, bool causal,
                const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value q = SplitHeads(Dense(b, x, width, name + ".q_proj"), heads);
  const Value k = SplitHeads(Dense(b, memory, width, name + ".k_proj", {.bias = false}), heads);
  const Value v = SplitHeads(Dense(b, memory, width, name + ".v_proj"), heads);
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  const Value y = OpOutputs("attention", {q, k, v}, {{"scale", scale}, {"causal", causal}},
                            name + ".attention")[0];
  return Dense(b, JoinHeads(y), width, name + ".out_proj");
}

// x + fc2(gelu(fc1(norm(x))))
Value Mlp(GraphBuilder& b, Value x, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value normed = LayerNorm(b, x, kEpsilon, name + ".final_layer_norm");
  return x + Dense(b, Gelu(Dense(b, normed, 4 * width, name + ".fc1")), width, name + ".fc2");
}

Value SelfAttended(GraphBuilder& b, Value x, int64_t heads, bool causal, const std::string& name) {
  const Value normed = LayerNorm(b, x, kEpsilon, name + ".self_attn_layer_norm");
  return x + Attention(b, normed, normed, heads, causal, name + ".self_attn");
}

Value Encode(GraphBuilder& b, const ModelArguments& arguments, const ModelOptions& options) {
  const int64_t width = arguments["hidden"], frames = arguments["frames"];
  const Value features = b.Input(
      "features", {options.dtype, {options.batch, arguments["mels"], frames}}, {"batch", "", ""});
  const std::string name = "model.encoder";
  Value x = ConvGelu(b, features, width, 1, name + ".conv1");
  x = Transpose(ConvGelu(b, x, width, 2, name + ".conv2"), {0, 2, 1});
  x = x + Sinusoids(b, options.dtype, (frames + 1) / 2, width);
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer) {
    const std::string block = fmt::format("{}.layers.{}", name, layer);
    x = Mlp(b, SelfAttended(b, x, arguments["heads"], /*causal=*/false, block), block);
  }
  return LayerNorm(b, x, kEpsilon, name + ".layer_norm");
}

// Logits [B,T,vocab] of the tokens that follow.
Value Decode(GraphBuilder& b, Value memory, const ModelArguments& arguments,
             const ModelOptions& options) {
  const int64_t width = arguments["hidden"], length = arguments["context"];
  const std::string name = "model.decoder";
  const Value tokens = TokenInput(b, options, length);
  const Value table =
      b.Parameter(name + ".embed_tokens.weight", {options.dtype, {arguments["vocab"], width}},
                  Init::Normal(kDeviation));
  const Value positions = b.Parameter(name + ".embed_positions.weight",
                                      {options.dtype, {length, width}}, Init::Normal(kDeviation));
  Value x = Op("gather", {table, tokens}, {}, name + ".embed_tokens") + positions;
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer) {
    const std::string block = fmt::format("{}.layers.{}", name, layer);
    x = SelfAttended(b, x, arguments["heads"], /*causal=*/true, block);
    const Value normed = LayerNorm(b, x, kEpsilon, block + ".encoder_attn_layer_norm");
    x = x +
        Attention(b, normed, memory, arguments["heads"], /*causal=*/false, block + ".encoder_attn");
    x = Mlp(b, x, block);
  }
  x = LayerNorm(b, x, kEpsilon, name + ".layer_norm");
  return Op("matmul", {x, table}, {{"transpose_b", 1}}, "proj_out");
}

Result<Graph> BuildWhisper(const ModelArguments& arguments, const ModelOptions& options) {
  const int64_t width = arguments["hidden"], heads = arguments["heads"];
  if (width % heads != 0 || width % 2 != 0) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("{}: hidden is {} and heads is {}; hidden must be even and a multiple "
                    "of heads",
                    arguments.model(), width, heads));
  }
  GraphBuilder b(arguments.model());
  LanguageModelEnd(b, options, Decode(b, Encode(b, arguments, options), arguments, options));
  return b.Build();
}

using Defaults = std::vector<std::pair<std::string, int64_t>>;

}  // namespace

BuiltinModel WhisperModel() {
  return {
      .name = "whisper_tiny",
      .doc = "Whisper as in Hugging Face transformers: speech to text, without dropout",
      .parameters = {{"vocab", "size of the vocabulary", 51865},
                     {"mels", "mel bands of the spectrogram", 80, 1, 1024},
                     {"frames", "columns of the spectrogram, 100 a second", 3000, 1, 65536},
                     {"context", "tokens of a sample", 448, 1, 448},
                     {"hidden", "width", 384, 4, 65536},
                     {"layers", "blocks of the encoder, and of the decoder", 4, 1, 1024},
                     {"heads", "attention heads", 6, 1, 1024}},
      .variants =
          {{"whisper_base", "Whisper base, 74 M",
            Defaults{{"hidden", 512}, {"layers", 6}, {"heads", 8}}},
           {"whisper_small", "Whisper small, 244 M",
            Defaults{{"hidden", 768}, {"layers", 12}, {"heads", 12}}},
           {"whisper_medium", "Whisper medium, 769 M",
            Defaults{{"hidden", 1024}, {"layers", 24}, {"heads", 16}}},
           {"whisper_large", "Whisper large-v3, 1.5 G",
            Defaults{
                {"vocab", 51866}, {"mels", 128}, {"hidden", 1280}, {"layers", 32}, {"heads", 20}}}},
      .build = BuildWhisper,
      .weight_names = WhisperWeightNames};
}

}  // namespace ridge
