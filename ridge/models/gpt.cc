// gpt: a decoder as GPT-2 (Radford et al., 2019): learned positions, layer norm before attention
// and MLP, GELU; the head is not tied to the embedding.
//
// Parameters: tok, pos, blocks.N.{ln1,qkv,proj,ln2,up,down}, lnf, head.weight.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-5;

// x + proj(attention(qkv(ln1(x)))), then x + down(gelu(up(ln2(x)))).
Value DecoderBlock(GraphBuilder& b, Value x, int64_t heads, const AttrMap& gelu,
                   const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value qkv = b.Linear(LayerNorm(b, x, kEpsilon, name + ".ln1"), 3 * width, name + ".qkv");
  const Value attended = SelfAttention(b, qkv, heads, /*causal=*/true, name + ".attn");
  x = x + b.Linear(attended, width, name + ".proj");
  const Value up = b.Linear(LayerNorm(b, x, kEpsilon, name + ".ln2"), 4 * width, name + ".up");
  return x + b.Linear(Op("gelu", {up}, gelu), width, name + ".down");
}

Result<Graph> BuildGpt(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("gpt");
  const int64_t length = arguments["context"], width = arguments["hidden"];
  const int64_t heads = arguments["heads"], vocab = arguments["vocab"];
  if (width % heads != 0) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("gpt: hidden is {} and heads is {}; hidden must be a multiple of heads", width,
                    heads));
  }
  const Value tokens = TokenInput(b, options, length);
  const Value positions =
      b.Parameter("pos.weight", {options.dtype, {length, width}}, Init::Normal(1));
  Value x = Embedding(b, tokens, vocab, width, 1, options.dtype, "tok") + positions;
  const AttrMap gelu = {
      {"approximate", std::string(arguments["gelu_tanh"] == 1 ? "tanh" : "none")}};
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer)
    x = DecoderBlock(b, x, heads, gelu, fmt::format("blocks.{}", layer));
  x = LayerNorm(b, x, kEpsilon, "lnf");
  LanguageModelEnd(b, options, b.Linear(x, vocab, "head", /*bias=*/false));
  return b.Build();
}

}  // namespace

BuiltinModel GptModel() {
  return {.name = "gpt",
          .doc = "a GPT-2-like decoder",
          .parameters = {{"vocab", "size of the vocabulary", 5000},
                         {"context", "tokens of a sample", 256, 1, 65536},
                         {"hidden", "width", 384, 1, 65536},
                         {"layers", "blocks", 6, 1, 1024},
                         {"heads", "attention heads", 6, 1, 1024},
                         {"gelu_tanh", "1: GELU by tanh, as GPT-2", 0, 0, 1}},
          .build = BuildGpt,
          .weight_names = GptWeightNames};
}

}  // namespace ridge
