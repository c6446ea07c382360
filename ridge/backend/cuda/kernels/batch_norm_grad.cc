// The gradient of batch_norm, whole and in parts: sums of parts of a channel, joined by a second
// pass; then a pass over all elements for dx.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/channel_text.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

// A channel, and what element x of it adds; dy counts where relu does not cut it.
constexpr std::string_view kGradChannelText = R"cuda(
typedef $R R;
struct Channel { R mean, rstd, slope, shift, mean_dscale, mean_dshift; };
RIDGE_FUNCTION Channel ChannelOf(R scale, R mean, R var, R shift) {
  const R rstd = R(1) / sqrt(var + $epsilon);
  Channel channel = {mean, rstd, scale * rstd, shift, R(0), R(0)};
  return channel;
}
RIDGE_FUNCTION R Counted(const Channel& c, R x, R dy) { return $counted; }
struct GradSums { R dscale, dshift; };
struct AddSums {
  RIDGE_FUNCTION GradSums operator()(GradSums a, GradSums b) const {
    GradSums sums = {a.dscale + b.dscale, a.dshift + b.dshift};
    return sums;
  }
};
)cuda";

constexpr std::string_view kGradSumsText = R"cuda(
RIDGE_KERNEL void grad_sums($parameters) {
  typedef $own Own;
  __shared__ GradSums scratch[$scratch];
  for ($Index tile = blockIdx.x; tile < $tiles; tile += gridDim.x) {
    const $Index part = tile % $parts, o = (tile / $parts * $columns + Own::Column()) * $wide;
    GradSums sums[$wide];
    Channel channels[$wide];
#pragma unroll
    for (int k = 0; k < $wide; ++k) {
      const $Index c = o < $outputs ? o + k : 0;
      channels[k] = $of_channel;
      sums[k].dscale = sums[k].dshift = 0;
    }
    if (o < $outputs) {
      const $Index first = $first, begin = part * $span;
      const $Index end = part == $parts - 1 ? $packs : begin + $span;
#pragma unroll 2
      for ($Index g = begin + Own::Lane(); g < end; g += $lanes) {
        const $Index e = g * $pack, at = first + $term;
        const Pack<$T, $load> p = LoadPack<$load>(x + at, 0), d = LoadPack<$load>(dy + at, 0);
#pragma unroll
        for (int k = 0; k < $load; ++k) {
          const Channel& channel = channels[$number];
          const R value = (R)Load(p.at, k), slope = Counted(channel, value, (R)Load(d.at, k));
          sums[$number].dshift += slope;
          sums[$number].dscale += slope * (value - channel.mean);
        }
      }
    }
    Own::BlockJoin(sums, scratch, AddSums());
    if (o < $outputs && Own::Lane() == 0) {
      R* const shares_of_part = shares + part * (2 * $outputs) + o;
#pragma unroll
      for (int k = 0; k < $wide; ++k) {
        shares_of_part[k] = sums[k].dscale * channels[k].rstd;
        shares_of_part[$outputs + k] = sums[k].dshift;
      }
    }
  }
}
)cuda";

// dshift and dscale as their means, for a term of a channel.
constexpr const char* kGradInputChannel = R"cuda(
RIDGE_FUNCTION Channel WithSums(Channel channel, R dscale, R dshift) {
  channel.mean_dshift = dshift / $all;
  channel.mean_dscale = dscale / $all * channel.rstd;
  return channel;
}
)cuda";

constexpr const char* kGradInputText = R"cuda(const R value = (R)Load(p_x[j].at, k);
        const R slope = Counted(channel, value, (R)Load(p_dy[j].at, k));
        const R rest = channel.mean_dshift + (value - channel.mean) * channel.mean_dscale;
        Store(q.at, k, channel.slope * (slope - rest));)cuda";

struct BatchNormGrad {
  const OpCall& call;
  ChannelShape shape;
  DType dtype;
  size_t shift;  // input
  bool relu;

  BatchNormGrad(LayoutId layout, const OpCall& of, size_t shift_input)
      : call(of),
        shape(ShapeOfChannels(of.inputs[0], layout)),
        dtype(of.inputs[0].dtype),
        shift(shift_input),
        relu(of.integer("relu") != 0) {}

  std::string OfChannel() const {
    return fmt::format("ChannelOf(scale[c], mean[c], var[c], {})", relu ? "shift[c]" : "R(0)");
  }

  ChannelOperands Operands() const {
    ChannelOperands operands;
    operands.AddInput(call, 0, "x");
    operands.AddInput(call, 1, "scale");
    operands.AddInput(call, 2, "mean");
    operands.AddInput(call, 3, "var");
    operands.AddInput(call, 4, "dy");
    if (relu) operands.AddInput(call, shift, "shift");
    return operands;
  }

  void Begin(KernelText& text) const {
    text.source =
        FillText(kGradChannelText,
                 {{"R", ComputeType(dtype)},
                  {"epsilon", Literal(call.number("epsilon"))},
                  {"counted", relu ? "(x - c.mean) * c.slope + c.shift > 0 ? dy : R(0)" : "dy"}});
    text.source += ReduceTileText();
  }

  int64_t Bytes(int64_t numbers) const {
    return RoundUp(numbers * (dtype == DType::kF64 ? 8 : 4), 256);
  }

  // dscale and dshift as outputs `first` and the next.
  void AddSums(int first, KernelText& text) const {
    ChannelOperands operands = Operands();
    operands.Add("R* shares", Argument::Workspace());
    TextValues values = shape.Values(dtype);
    values.emplace_back("parameters", operands.parameters);
    values.emplace_back("of_channel", OfChannel());
    const int64_t channels = shape.channels();
    const ReduceTile join = TileOfParts(2 * channels, shape.tile.parts);
    text.source += FillText(kGradSumsText, values);
    text.source += JoinSumsText(
        join, "R* dscale, R* dshift",
        fmt::format("if (o < {0}) dscale[o] = sum; else dshift[o - {0}] = sum;", channels));
    text.workspace_bytes = Bytes(2 * channels * shape.tile.parts);
    text.launches.push_back({"grad_sums", shape.tile.Blocks(), kBlockThreads, operands.arguments});
    text.launches.push_back(
        {"join_sums",
         join.Blocks(),
         kBlockThreads,
         {Argument::Workspace(), Argument::Output(first), Argument::Output(first + 1)}});
  }

  // dx as output 0, from the sums over `slices`, which `operands` end with.
  void AddInputGrad(ChannelOperands operands, int64_t slices, const char* dscale,
                    const char* dshift, KernelText& text) const {
    operands.AddOutput(call, 0, "dx");
    const int64_t all = slices * std::max<int64_t>(shape.elements_per_channel(), 1);
    text.source += FillText(kGradInputChannel, {{"all", fmt::format("R({}.0)", all)}});
    const ElementsPass pass{
        .name = "grad_input",
        .inputs = {"x", "dy"},
        .channel = fmt::format("WithSums({}, {}, {})", OfChannel(), dscale, dshift),
        .value = kGradInputText,
        .out = "dx"};
    AppendElements(shape, dtype, operands, pass, text);
  }
};

const char* WriteGrad(LayoutId layout, const OpCall& call, KernelText& text) {
  const BatchNormGrad grad(layout, call, 5);
  grad.Begin(text);
  grad.AddSums(1, text);
  ChannelOperands operands = grad.Operands();
  operands.AddOutput(call, 1, "dscale");
  operands.AddOutput(call, 2, "dshift");
  grad.AddInputGrad(std::move(operands), 1, "dscale[c]", "dshift[c]", text);
  return nullptr;
}

const char* WriteGradSums(LayoutId layout, const OpCall& call, KernelText& text) {
  const BatchNormGrad grad(layout, call, 5);
  grad.Begin(text);
  grad.AddSums(0, text);
  return nullptr;
}

constexpr size_t kSliceSums = 5;  // input: [S,2,C]

// The sums of the slices are added up first.
const char* WriteGradInput(LayoutId layout, const OpCall& call, KernelText& text) {
  const BatchNormGrad grad(layout, call, 6);
  const int64_t slices = call.inputs[kSliceSums].dims[0], channels = grad.shape.channels();
  const ReduceTile join = TileOfParts(2 * channels, slices);
  grad.Begin(text);
  text.source += JoinSumsText(join, "R* sums", "sums[o] = sum;");
  text.workspace_bytes = grad.Bytes(2 * channels);
  text.launches = {{"join_sums",
                    join.Blocks(),
                    kBlockThreads,
                    {Argument::Input(static_cast<int>(kSliceSums)), Argument::Workspace()}}};
  ChannelOperands operands = grad.Operands();
  operands.Add("const R* sums", Argument::Workspace());
  const std::string dshift = fmt::format("sums[{} + c]", channels);
  grad.AddInputGrad(std::move(operands), slices, "sums[c]", dshift.c_str(), text);
  return nullptr;
}

using WriteInLayout = const char* (*)(LayoutId, const OpCall&, KernelText&);

template <WriteInLayout kWrite>
const char* WriteRowMajor(const OpDef&, const OpCall& call, KernelText& text) {
  return kWrite(kRowMajor, call, text);
}

template <WriteInLayout kWrite>
const char* WriteChannelsLast(const OpDef&, const OpCall& call, KernelText& text) {
  return HasLayouts(call.inputs[0]) ? kWrite(kChannelsLast, call, text) : refusal::kLayout;
}

template <WriteInLayout kWrite>
TextKernelDef KernelOf(const std::string& op) {
  return {.name = "cuda." + op,
          .ops = {op},
          .write = WriteRowMajor<kWrite>,
          .write_channels_last = WriteChannelsLast<kWrite>};
}

}  // namespace

TextKernelDef BatchNormGradTextKernel() { return KernelOf<WriteGrad>("batch_norm_grad"); }

TextKernelDef BatchNormGradSumsTextKernel() {
  return KernelOf<WriteGradSums>("batch_norm_grad_sums");
}

TextKernelDef BatchNormGradInputTextKernel() {
  TextKernelDef def = KernelOf<WriteGradInput>("batch_norm_grad_input");
  def.row_major_inputs = {kSliceSums};
  return def;
}

}  // namespace ridge::cuda
