// gpt: a decoder as GPT-2 (Radford et al., 2019): learned positions, layer norm before attention
// and MLP, GELU.  With documents=1
// tokens see those of their own text, and positions begin anew in each.  With tied=1 the head is
// the embedding, as in GPT-2's public files.
//
// Parameters: tok, pos, blocks.N.{ln1,qkv,proj,ln2,up,down}, lnf, and head.weight unless tied.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kTiedDeviation = 0.02;  // GPT-2's: the logits start near 0

// What the blocks share.
struct Net {
  int64_t heads, inner;
  double epsilon;
  AttrMap gelu;
  Value visible = {};  // which tokens see which, beside the causal order
};

// x + proj(attention(qkv(ln1(x)))), then x + down(gelu(up(ln2(x)))).
Value DecoderBlock(GraphBuilder& b, Value x, const Net& net, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value qkv = b.Linear(LayerNorm(b, x, net.epsilon, name + ".ln1"), 3 * width, name + ".qkv");
  const Value attended =
      SelfAttention(b, qkv, net.heads, /*causal=*/true, name + ".attn", net.visible);
  x = x + b.Linear(attended, width, name + ".proj");
  const Value up = b.Linear(LayerNorm(b, x, net.epsilon, name + ".ln2"), net.inner, name + ".up");
  return x + b.Linear(Op("gelu", {up}, net.gelu), width, name + ".down");
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
  const bool tied = arguments["tied"] == 1;
  const double deviation = tied ? kTiedDeviation : 1;
  const Value table =
      b.Parameter("tok.weight", {options.dtype, {vocab, width}}, Init::Normal(deviation));
  Value x = Op("gather", {table, tokens}, {}, "tok");
  Value visible;
  if (arguments["documents"] == 1) {
    const Value position_ids = PositionInput(b, options, length);
    x = x + Op("gather", {positions, position_ids}, {}, "pos");
    visible = SameText(b, position_ids);
  } else {
    x = x + positions;
  }
  const std::string gelu = arguments["gelu_tanh"] == 1 ? "tanh" : "none";
  const int64_t inner = arguments["inner"] == 0 ? 4 * width : arguments["inner"];
  const Net net = {heads, inner, arguments.Real("epsilon"), {{"approximate", gelu}}, visible};
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer)
    x = DecoderBlock(b, x, net, fmt::format("blocks.{}", layer));
  x = LayerNorm(b, x, net.epsilon, "lnf");
  const Value logits = tied ? Op("matmul", {x, table}, {{"transpose_b", 1}}, "head")
                            : b.Linear(x, vocab, "head", /*bias=*/false);
  LanguageModelEnd(b, options, logits);
  return b.Build();
}

// The vocabulary, context and mathematics of GPT-2.
std::vector<std::pair<std::string, int64_t>> Gpt2Sizes(int64_t hidden, int64_t layers,
                                                       int64_t heads) {
  return {{"vocab", 50257}, {"context", 1024}, {"hidden", hidden}, {"layers", layers},
          {"heads", heads}, {"gelu_tanh", 1},  {"tied", 1}};
}

// Of GPT-3 (Brown et al., 2020, table 2.1), whose sparse attention is full here.
ModelVariant Gpt3(const std::string& size, int64_t hidden, int64_t layers, int64_t heads) {
  std::vector<std::pair<std::string, int64_t>> sizes = Gpt2Sizes(hidden, layers, heads);
  sizes[1].second = 2048;  // context
  return {"gpt:" + size, "GPT-3 of this size, attention to all tokens before", std::move(sizes)};
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
                         {"gelu_tanh", "1: GELU by tanh, as GPT-2", 0, 0, 1},
                         {"tied", "1: the head is the embedding, as GPT-2", 0, 0, 1},
                         {"inner", "width of the MLP; 0: 4 x hidden", 0, 0},
                         {"documents", "1: an input position_ids, which keeps texts of a row apart",
                          0, 0, 1},
                         {.name = "epsilon",
                          .doc = "that layer norms add to the variance",
                          .real = RealRange{1e-5, 0, 1}}},
          .variants = {{"gpt_nano", "minGPT's gpt-nano", Gpt2Sizes(48, 3, 3)},
                       {"gpt_micro", "minGPT's gpt-micro", Gpt2Sizes(128, 4, 4)},
                       {"gpt_mini", "minGPT's gpt-mini", Gpt2Sizes(192, 6, 6)},
                       {"gpt2", "GPT-2, 124 M", Gpt2Sizes(768, 12, 12)},
                       {"gpt2_medium", "GPT-2, 355 M", Gpt2Sizes(1024, 24, 16)},
                       {"gpt2_large", "GPT-2, 774 M", Gpt2Sizes(1280, 36, 20)},
                       {"gpt2_xl", "GPT-2, 1.6 G", Gpt2Sizes(1600, 48, 25)},
                       Gpt3("125m", 768, 12, 12),
                       Gpt3("350m", 1024, 24, 16),
                       Gpt3("760m", 1536, 24, 16),
                       Gpt3("1.3b", 2048, 24, 16),  // the table's 24 heads do not divide 2048
                       Gpt3("2.7b", 2560, 32, 32),
                       Gpt3("6.7b", 4096, 32, 32),
                       Gpt3("13b", 5120, 40, 40),  // nor its 40 heads 5140
                       Gpt3("175b", 12288, 96, 96)},
          .build = BuildGpt,
          .weight_names = GptWeightNames};
}

}  // namespace ridge
