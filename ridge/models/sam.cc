// sam_vit_b, sam_vit_l, sam_vit_h: the image encoder of Segment Anything (Kirillov et al., ICCV
// 2023), a plain ViT with windows (Li et al., ECCV 2022), and a classifier over its features.
//
// Most blocks attend within windows of 14x14 patches, padded with zeros; the last of each three (of
// six and eight at the sizes l and h) attends to all.  A neck of two convolutions ends in 256
// channels; their mean feeds the head.  Names are those of the public checkpoints.
//
// Scores have a term for the difference in rows and one for that in columns (Li et al., MViTv2,
// CVPR 2022), q . rows[i - i'] + q . columns[j - j'].  As a mask they would be as large as the
// scores, which for 64x64 patches and 12 heads is 805 MB a picture.  Instead both are products of q
// and k: the terms of all i' and j' stand behind the channels of q, and behind those of k stands a
// 1 at its own i' and j'.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kDeviation = 0.02;
constexpr int64_t kPatch = 16, kNeck = 256;

// What the blocks share.
struct Encoder {
  int64_t heads, window;
  double epsilon;
};

Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name) {
  return Linear(b, x, out, name, {.deviation = kDeviation});
}

Value ChannelsLast(Value x) { return Transpose(x, {0, 2, 3, 1}); }
Value ChannelsFirst(Value x) { return Transpose(x, {0, 3, 1, 2}); }

// [size,size,D]: for query i and key i' the row i - i' + size - 1 of a table [2 size - 1,D].
Value RelativeRows(GraphBuilder& b, int64_t size, int64_t width, DType dtype,
                   const std::string& name) {
  const Value table = b.Parameter(name, {dtype, {2 * size - 1, width}}, Init::Zeros());
  std::vector<int64_t> rows;
  for (int64_t query = 0; query < size; ++query) {
    for (int64_t key = 0; key < size; ++key) rows.push_back(query - key + size - 1);
  }
  return Gather(table, b.Constant(Tensor::FromInts({size, size}, rows)));
}

// [1,1,H*W,H + W]: a 1 at the row and one at the column of each place.
Value PlaceMarks(GraphBuilder& b, int64_t height, int64_t width, DType dtype) {
  Tensor marks({dtype, {1, 1, height * width, height + width}});
  for (int64_t place = 0; place < height * width; ++place) {
    const int64_t start = place * (height + width);
    for (int64_t i = 0; i < height + width; ++i)
      StoreFromDouble(dtype, marks.mutable_data(), start + i, 0);
    StoreFromDouble(dtype, marks.mutable_data(), start + place / width, 1);
    StoreFromDouble(dtype, marks.mutable_data(), start + height + place % width, 1);
  }
  return b.Constant(std::move(marks), "places");
}

// q [B,heads,H*W,D] -> [B,heads,H*W,H + W], its scores for each row and each column.
Value RelativeScores(GraphBuilder& b, Value q, int64_t height, int64_t width,
                     const std::string& name) {
  if (!b.ok()) return {};
  const Dims d = q.dims();
  const DType dtype = q.dtype();
  const Value grid = Reshape(q, {d[0], d[1], height, width, d[3]});
  const Value rows = MatMul(grid, RelativeRows(b, height, d[3], dtype, name + ".rel_pos_h"),
                            /*transpose_a=*/false, /*transpose_b=*/true);
  const Value turned = Transpose(grid, {0, 1, 3, 2, 4});
  const Value columns = MatMul(turned, RelativeRows(b, width, d[3], dtype, name + ".rel_pos_w"),
                               /*transpose_a=*/false, /*transpose_b=*/true);
  const Value both = Concat({rows, Transpose(columns, {0, 1, 3, 2, 4})}, 4);
  return Reshape(both, {d[0], d[1], d[2], height + width});
}

// x [B,H,W,C]: every place attends to all places.
Value Attention(GraphBuilder& b, Value x, int64_t heads, const std::string& name) {
  if (!b.ok()) return {};
  const Dims d = x.dims();
  const int64_t height = d[1], width = d[2], places = height * width;
  const Value qkv = Dense(b, Reshape(x, {d[0], places, d[3]}), 3 * d[3], name + ".qkv");
  const auto part = [&](int64_t i) {
    return SplitHeads(Slice(qkv, 2, i * d[3], (i + 1) * d[3]), heads);
  };
  const Value q = part(0), k = part(1), v = part(2);
  const double scale = 1 / std::sqrt(static_cast<double>(d[3] / heads));
  const Value scores = RelativeScores(b, q, height, width, name);
  const Value marks =
      Expand(PlaceMarks(b, height, width, x.dtype()), {d[0], heads, places, height + width});
  const Value y = OpOutputs("attention", {Concat({q * scale, scores}, 3), Concat({k, marks}, 3), v},
                            {{"scale", 1.0}}, name)[0];
  return Reshape(Dense(b, JoinHeads(y), d[3], name + ".proj"), d);
}

// x [B,H,W,C]: attention within windows, the last ones of a row and column padded with zeros.
Value WindowAttention(GraphBuilder& b, Value x, const Encoder& encoder, const std::string& name) {
  if (!b.ok()) return {};
  const Dims d = x.dims();
  const int64_t window = encoder.window;
  const int64_t rows = (d[1] + window - 1) / window, columns = (d[2] + window - 1) / window;
  const std::vector<int64_t> none(4, 0);
  const std::vector<int64_t> after = {0, rows * window - d[1], columns * window - d[2], 0};
  x = Op("pad", {x}, {{"before", none}, {"after", after}});
  x = Transpose(Reshape(x, {d[0], rows, window, columns, window, d[3]}), {0, 1, 3, 2, 4, 5});
  x = Reshape(x, {d[0] * rows * columns, window, window, d[3]});
  x = Attention(b, x, encoder.heads, name);
  x = Transpose(Reshape(x, {d[0], rows, columns, window, window, d[3]}), {0, 1, 3, 2, 4, 5});
  x = Reshape(x, {d[0], rows * window, columns * window, d[3]});
  return Slice(Slice(x, 1, 0, d[1]), 2, 0, d[2]);
}

Value Block(GraphBuilder& b, Value x, const Encoder& encoder, bool global,
            const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[3];
  const Value normed = LayerNorm(b, x, encoder.epsilon, name + ".norm1");
  x = x + (global ? Attention(b, normed, encoder.heads, name + ".attn")
                  : WindowAttention(b, normed, encoder, name + ".attn"));
  const Value up =
      Dense(b, LayerNorm(b, x, encoder.epsilon, name + ".norm2"), 4 * width, name + ".mlp.lin1");
  return x + Dense(b, Gelu(up), width, name + ".mlp.lin2");
}

// x [B,H,W,C] -> [B,256,H,W]
Value Neck(GraphBuilder& b, Value x, double epsilon, const std::string& name) {
  const auto layer = [&](Value in, int64_t kernel, int64_t at) {
    const ConvOptions options = {
        .kernel = kernel, .padding = kernel / 2, .bias = false, .deviation = kDeviation};
    const Value y = Conv(b, in, kNeck, fmt::format("{}.{}", name, at), options);
    return ChannelsFirst(
        LayerNorm(b, ChannelsLast(y), epsilon, fmt::format("{}.{}", name, at + 1)));
  };
  return layer(layer(ChannelsFirst(x), 1, 0), 3, 2);
}

Status CheckSizes(const ModelArguments& arguments) {
  for (const auto& [of, by] : {std::pair{"image", kPatch}, {"hidden", arguments["heads"]}}) {
    if (arguments[of] % by == 0) continue;
    return Status(ErrorCode::kInvalidModel, fmt::format("{}: {} is {}; it must be a multiple of {}",
                                                        arguments.model(), of, arguments[of], by));
  }
  return Status();
}

Result<Graph> BuildSam(const ModelArguments& arguments, const ModelOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckSizes(arguments));
  const Encoder encoder = {arguments["heads"], arguments["window"], arguments.Real("epsilon")};
  const int64_t size = arguments["image"], width = arguments["hidden"], side = size / kPatch;
  GraphBuilder b(arguments.model());
  Value x = ImageInput(b, options, {3, size, size});
  x = ChannelsLast(
      Conv(b, x, width, "image_encoder.patch_embed.proj", {.kernel = kPatch, .stride = kPatch}));
  x = x + b.Parameter("image_encoder.pos_embed", {options.dtype, {1, side, side, width}},
                      Init::Zeros());
  const int64_t every = arguments["global"];
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer) {
    const bool global = layer % every == every - 1;
    x = Block(b, x, encoder, global, fmt::format("image_encoder.blocks.{}", layer));
  }
  x = Neck(b, x, encoder.epsilon, "image_encoder.neck");
  x = Op("reduce_mean", {x}, {{"axes", {2, 3}}}, "avgpool");
  ClassifierEnd(b, options, Dense(b, x, arguments["classes"], "head.fc"));
  return b.Build();
}

using Defaults = std::vector<std::pair<std::string, int64_t>>;

}  // namespace

BuiltinModel SamModel() {
  return {.name = "sam_vit_b",
          .doc = "Segment Anything's image encoder, ViT-B, and a classifier",
          .parameters = {{"image", "height and width", 1024, kPatch, 4096},
                         {"classes", "classes", 1000},
                         {"hidden", "width", 768, 1, 65536},
                         {"layers", "blocks", 12, 1, 1024},
                         {"heads", "attention heads", 12, 1, 1024},
                         {"global", "of so many blocks the last attends to all places", 3, 1, 1024},
                         {"window", "height and width of a window, in patches", 14, 1, 256},
                         {.name = "epsilon",
                          .doc = "that layer norms add to the variance",
                          .real = RealRange{1e-6, 0, 1}}},
          .variants = {{"sam_vit_l", "Segment Anything's image encoder, ViT-L, and a classifier",
                        Defaults{{"hidden", 1024}, {"layers", 24}, {"heads", 16}, {"global", 6}}},
                       {"sam_vit_h", "Segment Anything's image encoder, ViT-H, and a classifier",
                        Defaults{{"hidden", 1280}, {"layers", 32}, {"heads", 16}, {"global", 8}}}},
          .build = BuildSam,
          .weight_names = SamWeightNames};
}

}  // namespace ridge
