// conformer_s to conformer_l: the encoder of Gulati et al., "Conformer", Interspeech 2020, with a
// linear layer to characters and ctc_loss, without dropout.
//
// Two convolutions make one frame of four; blocks of half a feed-forward layer, attention with
// relative positions (Transformer-XL), convolution over time, and the other half.  Frames behind a
// sample's last are hidden from attention and convolution.  Blocks and their names are those of
// Hugging Face's Wav2Vec2Conformer.  docs/design/0031: what differs elsewhere.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kHidden = -1e9;  // added to the scores of frames that nothing sees

int64_t Quarter(int64_t frames) { return (frames + 3) / 4; }

struct Frames {
  Value x;        // [B,T,C]
  Value visible;  // bool [B,T]: of the sample, not padding
  Value places;   // [2T-1,C]: sinusoids of T-1 down to -(T-1)
  int64_t heads = 0, kernel = 0;
};

// Sines in the even columns, cosines in the odd ones.
Value RelativePlaces(GraphBuilder& b, DType dtype, int64_t frames, int64_t width) {
  Tensor table({dtype, {2 * frames - 1, width}});
  for (int64_t row = 0; row < 2 * frames - 1; ++row) {
    const auto distance = static_cast<double>(frames - 1 - row);
    for (int64_t i = 0; i < width / 2; ++i) {
      const double exponent = static_cast<double>(2 * i) / static_cast<double>(width);
      const double angle = distance * std::pow(10000.0, -exponent);
      StoreFromDouble(dtype, table.mutable_data(), row * width + 2 * i, std::sin(angle));
      StoreFromDouble(dtype, table.mutable_data(), row * width + 2 * i + 1, std::cos(angle));
    }
  }
  return b.Constant(std::move(table), "encoder.embed_positions");
}

// [B,H,T,2T-1], by distance -> [B,H,T,T], by key: row i begins T-1-i columns later.
Value ByKey(Value scores) {
  if (!scores.valid()) return {};
  const Dims d = scores.dims();
  const Value padded = Op("pad", {scores}, {{"before", {0, 0, 0, 1}}, {"after", {0, 0, 0, 0}}});
  const Value skewed = ReshapeExactly(padded, {d[0], d[1], d[3] + 1, d[2]});
  return Slice(ReshapeExactly(Slice(skewed, 2, 1, d[3] + 1), d), 3, 0, d[2]);
}

// scale ((q + u) k + (q + v) p), p of the distance between query and key.
Value RelativeAttention(GraphBuilder& b, const Frames& at, Value x, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2], frames = x.dims()[1], head_dim = width / at.heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const auto bias = [&](const char* which) {
    const Value v = b.Parameter(name + which, {x.dtype(), {at.heads, head_dim}}, Init::Zeros());
    return Reshape(v, {1, at.heads, 1, head_dim});
  };
  const Value q = SplitHeads(b.Linear(x, width, name + ".linear_q"), at.heads);
  const Value k = SplitHeads(b.Linear(x, width, name + ".linear_k"), at.heads);
  const Value v = SplitHeads(b.Linear(x, width, name + ".linear_v"), at.heads);
  const Value places = b.Linear(at.places, width, name + ".linear_pos", /*bias=*/false);
  const Value p = Transpose(Reshape(places, {1, 2 * frames - 1, at.heads, head_dim}), {0, 2, 1, 3});
  const Value far = ByKey(MatMul(q + bias(".pos_bias_v"), p, false, /*transpose_b=*/true)) * scale;
  const Value zero = ScalarLike(far, 0);
  const Value hidden =
      Where(ReshapeExactly(at.visible, {x.dims()[0], 1, 1, frames}), zero, kHidden);
  const Value y = OpOutputs("attention", {q + bias(".pos_bias_u"), k, v, far + hidden},
                            {{"scale", scale}}, name + ".attention")[0];
  return b.Linear(JoinHeads(y), width, name + ".linear_out");
}

// [B,C,T] -> [B,out,T'] without a bias.
Value TimeConv(GraphBuilder& b, Value x, int64_t out, int64_t kernel, int64_t groups,
               const std::string& name) {
  if (!b.ok()) return {};
  const int64_t in = x.dims()[1] / groups, side = (kernel - 1) / 2;
  const double bound = 1 / std::sqrt(static_cast<double>(in * kernel));
  const Value weight =
      b.Parameter(name + ".weight", {x.dtype(), {out, in, kernel}}, Init::Uniform(bound));
  return Op("conv", {x, weight}, {{"padding", {side, side}}, {"groups", groups}}, name);
}

Value ConvModule(GraphBuilder& b, const Frames& at, const std::string& name) {
  if (!b.ok()) return {};
  const Dims d = at.x.dims();
  Value x = Transpose(LayerNorm(b, at.x, kEpsilon, name + ".layer_norm"), {0, 2, 1});
  x = TimeConv(b, x, 2 * d[2], 1, 1, name + ".pointwise_conv1");
  x = Slice(x, 1, 0, d[2]) * Sigmoid(Slice(x, 1, d[2], 2 * d[2]));
  x = x * Cast(ReshapeExactly(at.visible, {d[0], 1, d[1]}), x.dtype());
  x = TimeConv(b, x, d[2], at.kernel, d[2], name + ".depthwise_conv");
  x = Silu(BatchNorm(b, x, name + ".batch_norm"));
  return Transpose(TimeConv(b, x, d[2], 1, 1, name + ".pointwise_conv2"), {0, 2, 1});
}

// Half of the sandwich.
Value FeedForward(GraphBuilder& b, Value x, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value normed = LayerNorm(b, x, kEpsilon, name + "_layer_norm");
  const Value wide = Silu(b.Linear(normed, 4 * width, name + ".intermediate_dense"));
  return x + b.Linear(wide, width, name + ".output_dense") * 0.5;
}

Value Block(GraphBuilder& b, Frames at, const std::string& name) {
  at.x = FeedForward(b, at.x, name + ".ffn1");
  const Value normed = LayerNorm(b, at.x, kEpsilon, name + ".self_attn_layer_norm");
  at.x = at.x + RelativeAttention(b, at, normed, name + ".self_attn");
  at.x = at.x + ConvModule(b, at, name + ".conv_module");
  at.x = FeedForward(b, at.x, name + ".ffn2");
  return LayerNorm(b, at.x, kEpsilon, name + ".final_layer_norm");
}

// features [B,mels,frames] -> [B,ceil(frames/4),width]
Value Subsample(GraphBuilder& b, Value features, int64_t width) {
  if (!b.ok()) return {};
  const Dims d = features.dims();
  Value x = ReshapeExactly(Transpose(features, {0, 2, 1}), {d[0], 1, d[2], d[1]});
  for (const char* name : {"subsampling.conv1", "subsampling.conv2"})
    x = Relu(Conv(b, x, width, name, {.kernel = 3, .stride = 2, .padding = 1}));
  if (!b.ok()) return {};
  const Dims s = x.dims();
  x = ReshapeExactly(Transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  return b.Linear(x, width, "subsampling.linear");
}

// i64 [B]: ceil(count / 4), at most `frames`.
Value QuarterOf(Value count, int64_t frames) {
  const Value quarter = Floor((Cast(count, DType::kF32) + 3) * 0.25);
  return Cast(Clip(quarter, 0, static_cast<double>(frames)), DType::kI64);
}

// bool [B,frames]
Value VisibleFrames(GraphBuilder& b, Value counts, int64_t frames) {
  if (!b.ok()) return {};
  Tensor numbers({DType::kI64, {1, frames}});
  std::iota(numbers.as_mutable<int64_t>(), numbers.as_mutable<int64_t>() + frames, int64_t{0});
  const Value number = b.Constant(std::move(numbers), "frame_numbers");
  return number < ReshapeExactly(counts, {counts.dims()[0], 1});
}

// As PyTorch's CTCLoss: each sample by the letters of its text, then the mean; 0 for a text that
// does not fit.
void CtcEnd(GraphBuilder& b, const ModelArguments& arguments, const ModelOptions& options,
            Value logits, Value counts) {
  if (!b.ok()) return;
  const Value text =
      b.Input("text", {DType::kI64, {options.batch, arguments["letters"]}}, {"batch", ""});
  const Value length = b.Input("text_length", {DType::kI64, {options.batch}}, {"batch"});
  const Value losses =
      Op("ctc_loss", {logits, text, counts, length}, {{"zero_infinity", 1}}, "losses");
  if (!b.ok()) return;
  const Value letters = Cast(Maximum(length, ScalarLike(length, 1)), losses.dtype());
  b.Output("logits", logits);
  b.Output("logit_lengths", counts);
  b.Output("loss", Op("reduce_mean", {losses / letters}, {}, "loss"));
}

Status CheckSizes(const ModelArguments& arguments) {
  const int64_t width = arguments["hidden"], heads = arguments["heads"];
  const int64_t kernel = arguments["kernel"];
  if (width % heads != 0 || width % 2 != 0) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("{}: hidden is {} and heads is {}; hidden must be even and a multiple "
                    "of heads",
                    arguments.model(), width, heads));
  }
  if (kernel % 2 == 1) return Status();
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: kernel is {}; it must be odd", arguments.model(), kernel));
}

Result<Graph> BuildConformer(const ModelArguments& arguments, const ModelOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckSizes(arguments));
  const int64_t width = arguments["hidden"], frames = Quarter(arguments["frames"]);
  GraphBuilder b(arguments.model());
  const Value features =
      b.Input("features", {options.dtype, {options.batch, arguments["mels"], arguments["frames"]}},
              {"batch", "", ""});
  const Value frame_count = b.Input("frame_count", {DType::kI64, {options.batch}}, {"batch"});
  const Value counts = QuarterOf(frame_count, frames);
  Frames at;
  at.heads = arguments["heads"];
  at.kernel = arguments["kernel"];
  at.visible = VisibleFrames(b, counts, frames);
  at.places = RelativePlaces(b, options.dtype, frames, width);
  at.x = Subsample(b, features, width);
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer)
    at.x = Block(b, at, fmt::format("encoder.layers.{}", layer));
  CtcEnd(b, arguments, options, b.Linear(at.x, arguments["classes"], "lm_head"), counts);
  return b.Build();
}

using Defaults = std::vector<std::pair<std::string, int64_t>>;

}  // namespace

BuiltinModel ConformerModel() {
  return {.name = "conformer_s",
          .doc = "Conformer (S) with CTC: speech to text by characters, without dropout",
          .parameters = {{"mels", "mel bands of the spectrogram", 80, 1, 1024},
                         {"frames", "columns of the spectrogram", 1600, 4, 65536},
                         {"letters", "of the longest text", 256, 1, 16384},
                         {"classes", "characters, the blank and the unknown one", 30, 2, 65536},
                         {"hidden", "width", 144, 4, 65536},
                         {"layers", "blocks", 16, 1, 1024},
                         {"heads", "attention heads", 4, 1, 1024},
                         {"kernel", "frames of the convolution over time, odd", 31, 1, 1023}},
          .variants = {{"conformer_m", "Conformer (M)", Defaults{{"hidden", 256}}},
                       {"conformer_l", "Conformer (L)",
                        Defaults{{"hidden", 512}, {"layers", 17}, {"heads", 8}}}},
          .build = BuildConformer,
          .weight_names = TorchvisionWeightNames};
}

}  // namespace ridge
