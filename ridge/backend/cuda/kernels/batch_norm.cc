// batch_norm, its moments and its inference form: mean and sum of squared distances of parts of a
// channel, each read once, joined by a second pass; then a pass over all elements, which applies
// the epilogue.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/channel_text.h"
#include "ridge/backend/cuda/kernels/pointwise_text.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/epilogue.h"

namespace ridge::cuda {
namespace {

// parts [part][2][C]: mean, and sum of the squared distances from it.  Both follow from distances
// to the part's first element, so that a large mean costs no digits.
constexpr std::string_view kMomentsText = R"cuda(
RIDGE_KERNEL void moments(const $T* x, R* part_moments) {
  typedef $own Own;
  __shared__ R scratch[$scratch];
  for ($Index tile = blockIdx.x; tile < $tiles; tile += gridDim.x) {
    const $Index part = tile % $parts, o = (tile / $parts * $columns + Own::Column()) * $wide;
    const $Index first = $first, begin = part * $span;
    const $Index end = o >= $outputs ? begin : part == $parts - 1 ? $packs : begin + $span;
    R starts[$wide], sums[$wide], squares[$wide];
#pragma unroll
    for (int k = 0; k < $wide; ++k) {
      const $Index e = begin * $pack;
      starts[k] = end > begin ? (R)Load(x, first + $term + k) : R(0);
      sums[k] = squares[k] = 0;
    }
#pragma unroll 4
    for ($Index g = begin + Own::Lane(); g < end; g += $lanes) {
      const $Index e = g * $pack;
      const Pack<$T, $load> p = LoadPack<$load>(x + (first + $term), 0);
#pragma unroll
      for (int k = 0; k < $load; ++k) {
        const R distance = (R)Load(p.at, k) - starts[$number];
        sums[$number] += distance;
        squares[$number] += distance * distance;
      }
    }
    Own::BlockJoin(sums, scratch, Sum());
    Own::BlockJoin(squares, scratch, Sum());
    if (o < $outputs && Own::Lane() == 0) {
      const R terms = R(end > begin ? (end - begin) * $pack : 1);
      R* const moments_of_part = part_moments + part * (2 * $outputs) + o;
#pragma unroll
      for (int k = 0; k < $wide; ++k) {
        const R mean = sums[k] / terms, rest = squares[k] - sums[k] * mean;
        moments_of_part[k] = starts[k] + mean;
        moments_of_part[$outputs + k] = rest < 0 ? R(0) : rest;
      }
    }
  }
}
)cuda";

// The mean of the parts' means, weighted by their terms; distances of those from it add to theirs.
// Both follow from distances to the first part's mean.
constexpr std::string_view kJoinMomentsText = R"cuda(
RIDGE_KERNEL void join_moments(const R* part_moments, R* means, R* variances) {
  typedef $own Own;
  __shared__ R scratch[$threads * 2];
  for (i64 tile = blockIdx.x; tile < $tiles; tile += gridDim.x) {
    const i64 o = tile * $columns + Own::Column(), end = o < $outputs ? $packs : 0;
    const R start = end > 0 ? part_moments[o] : R(0);
    R sums[2] = {R(0), R(0)};
#pragma unroll 4
    for (i64 p = Own::Lane(); p < end; p += $lanes) {
      const R distance = part_moments[p * (2 * $outputs) + o] - start;
      const R weighted = distance * (p == $packs - 1 ? $last_terms : $terms);
      sums[0] += weighted;
      sums[1] += part_moments[p * (2 * $outputs) + $outputs + o] + distance * weighted;
    }
    Own::BlockJoin(sums, scratch, Sum());
    if (o < $outputs && Own::Lane() == 0) {
      const R mean = sums[0] / $count, squares = sums[1] - sums[0] * mean;
      means[o] = start + mean;
      variances[o] = squares / $count;
    }
  }
}
)cuda";

struct MomentTerms {
  std::string each, last, count;
};

std::string JoinMomentsText(const ReduceTile& tile, const MomentTerms& terms) {
  TextValues values = tile.Values();
  values.insert(values.end(),
                {{"terms", terms.each}, {"last_terms", terms.last}, {"count", terms.count}});
  return FillText(kJoinMomentsText, values);
}

// Mean and variance as outputs `first_output` and the next.
void AddMoments(const ChannelShape& shape, DType dtype, int first_output, KernelText& text) {
  const ReduceTile& tile = shape.tile;
  const ReduceTile join = TileOfParts(shape.channels(), tile.parts);
  const int64_t each = tile.span * tile.pack, width = tile.width;
  const MomentTerms terms{fmt::format("R({}.0)", each),
                          fmt::format("R({}.0)", width - (tile.parts - 1) * each),
                          FillText("$count", shape.Values(dtype))};
  text.source += std::string(ReduceTileText()) + FillText(kMomentsText, shape.Values(dtype)) +
                 JoinMomentsText(join, terms);
  const int64_t bytes = dtype == DType::kF64 ? 8 : 4;
  text.workspace_bytes = RoundUp(2 * tile.parts * shape.channels() * bytes, 256);
  text.launches.push_back(
      {"moments", tile.Blocks(), kBlockThreads, {Argument::Input(0), Argument::Workspace()}});
  text.launches.push_back({"join_moments",
                           join.Blocks(),
                           kBlockThreads,
                           {Argument::Workspace(), Argument::Output(first_output),
                            Argument::Output(first_output + 1)}});
}

constexpr const char* kNormalChannel = R"cuda(
struct Channel { R mean, factor, shift; };
RIDGE_FUNCTION Channel ChannelOf(R scale, R shift, R mean, R var) {
  Channel channel = {mean, scale / sqrt(var + $epsilon), shift};
  return channel;
}
)cuda";

constexpr const char* kNormalText =
    R"cuda(R v = ((R)Load(p_x[j].at, k) - channel.mean) * channel.factor + channel.shift;
        $steps
        Store(q.at, k, v);)cuda";

// The steps on `v`, and what they add.
const char* AddEpilogue(const OpCall& call, size_t first_extra, ChannelOperands& operands,
                        ElementsPass& pass, std::string& steps) {
  const char* stored = StorageType(call.outputs[0].dtype);
  const Result<std::vector<EpilogueStep>> parsed = ParseEpilogue(call.text("epilogue"), call.where);
  for (const EpilogueStep& step : *parsed) {
    const std::optional<std::string> value = PointwiseValue(*step.op, step.attrs);
    if (!value) return refusal::kExpression;
    std::string second;
    if (step.extra >= 0) {
      const std::string name = fmt::format("extra{}", step.extra);
      operands.AddInput(call, first_extra + static_cast<size_t>(step.extra), name.c_str());
      pass.inputs.push_back(name);
      second = fmt::format("const R b = (R)Load(p_{}[j].at, k);\n          ", name);
    }
    steps += fmt::format(
        "{{\n          const R a = As<{}>(v);\n          {}v = {};\n        }}\n        ", stored,
        second, *value);
  }
  return nullptr;
}

const char* AddNormal(const OpCall& call, const ChannelShape& shape, size_t first_extra,
                      ChannelOperands operands, KernelText& text) {
  const std::string epsilon = Literal(call.number("epsilon"));
  ElementsPass pass{
      .name = "normalize",
      .inputs = {"x"},
      .channel =
          "ChannelOf((R)Load(scale, c), (R)Load(shift, c), (R)Load(mean, c), (R)Load(var, c))",
      .out = "y"};
  operands.AddOutput(call, 0, "y");
  std::string steps;
  if (const char* reason = AddEpilogue(call, first_extra, operands, pass, steps); reason != nullptr)
    return reason;
  pass.value = FillText(kNormalText, {{"steps", steps}});
  text.source += FillText(kNormalChannel, {{"epsilon", epsilon}});
  AppendElements(shape, call.inputs[0].dtype, operands, pass, text);
  return nullptr;
}

const char* WriteIn(LayoutId layout, const OpDef& op, const OpCall& call, KernelText& text) {
  const DType dtype = call.inputs[0].dtype;
  const ChannelShape shape = ShapeOfChannels(call.inputs[0], layout);
  text.source = PointwiseFunctions(ComputeType(dtype));
  if (op.name == "batch_norm_moments") {
    AddMoments(shape, dtype, 0, text);
    return nullptr;
  }
  ChannelOperands operands;
  operands.AddInput(call, 0, "x");
  operands.AddInput(call, 1, "scale");
  operands.AddInput(call, 2, "shift");
  if (op.name == "batch_norm_inference") {
    operands.AddInput(call, 3, "mean");
    operands.AddInput(call, 4, "var");
    return AddNormal(call, shape, 5, std::move(operands), text);
  }
  AddMoments(shape, dtype, 1, text);
  operands.AddOutput(call, 1, "mean");
  operands.AddOutput(call, 2, "var");
  return AddNormal(call, shape, 3, std::move(operands), text);
}

const char* WriteBatchNorm(const OpDef& op, const OpCall& call, KernelText& text) {
  return WriteIn(kRowMajor, op, call, text);
}

const char* WriteBatchNormChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  return HasLayouts(call.inputs[0]) ? WriteIn(kChannelsLast, op, call, text) : refusal::kLayout;
}

// parts [S,2,C] of slices: variances instead of sums, of equally many terms.
const char* WriteCombine(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType& parts = call.inputs[0];
  const ReduceTile tile = TileOfParts(parts.dims[2], parts.dims[0]);
  const MomentTerms terms{"R(1)", "R(1)", fmt::format("R({}.0)", parts.dims[0])};
  if (parts.dtype != DType::kF32 && parts.dtype != DType::kF64) return refusal::kDType;
  text.source = fmt::format("typedef {} R;\n", ComputeType(parts.dtype)) +
                std::string(ReduceTileText()) + JoinMomentsText(tile, terms);
  text.launches = {{"join_moments",
                    tile.Blocks(),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Output(0), Argument::Output(1)}}};
  return nullptr;
}

}  // namespace

TextKernelDef BatchNormTextKernel() {
  return {.name = "cuda.batch_norm",
          .ops = {"batch_norm", "batch_norm_inference", "batch_norm_moments"},
          .write = WriteBatchNorm,
          .write_channels_last = WriteBatchNormChannelsLast};
}

TextKernelDef BatchNormCombineTextKernel() {
  return {.name = "cuda.batch_norm_combine", .ops = {"batch_norm_combine"}, .write = WriteCombine};
}

}  // namespace ridge::cuda
