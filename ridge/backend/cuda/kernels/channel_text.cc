#include "ridge/backend/cuda/kernels/channel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kElementPackBytes = 16;

constexpr std::string_view kElementsText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  const $Index threads = ($Index)Threads();
  $Index first = ($Index)Thread();
$own_channels  for (; first < $groups; first += $each * threads) {
$own_packs#pragma unroll
    for (int j = 0; j < $each; ++j) {
      const $Index group = first + j * threads;
      if (group < $groups) {
$loads      }
    }
#pragma unroll
    for (int j = 0; j < $each; ++j) {
      const $Index group = first + j * threads;
      if (group >= $groups) continue;
      Pack<$T, $elements_pack> q;
#pragma unroll
      for (int k = 0; k < $elements_pack; ++k) {
        $channel
        $value
      }
      StorePack($out, group, q);
    }
  }
}
)cuda";

// The distance between a thread's packs is a multiple of the channels.
constexpr const char* kOwnChannels = R"cuda(  Channel channels[$elements_pack];
#pragma unroll
  for (int k = 0; k < $elements_pack; ++k) {
    const $Index c = first % $groups_of_channels * $elements_pack + k;
    channels[k] = $of_channel;
  }
)cuda";

// The channel of element k of a pack; packs within a channel need it once.
std::string ChannelText(const ChannelShape& shape) {
  const int64_t inner = std::max<int64_t>(shape.view.inner, 1);
  if (inner % shape.pack == 0)
    return fmt::format("group / {} % {}", inner / shape.pack, shape.channels());
  return fmt::format("(group * {} + k) / {} % {}", shape.pack, inner, shape.channels());
}

}  // namespace

void ChannelOperands::Add(const std::string& declaration, Argument argument) {
  parameters += (parameters.empty() ? "" : ", ") + declaration;
  arguments.push_back(argument);
}

void ChannelOperands::AddInput(const OpCall& call, size_t i, const char* name) {
  Add(fmt::format("const {}* {}", StorageType(call.inputs[i].dtype), name),
      Argument::Input(static_cast<int>(i)));
}

void ChannelOperands::AddOutput(const OpCall& call, size_t o, const char* name) {
  Add(fmt::format("{}* {}", StorageType(call.outputs[o].dtype), name),
      Argument::Output(static_cast<int>(o)));
}

TextValues ChannelShape::Values(DType dtype) const {
  TextValues values = tile.Values();
  const int64_t count = std::max<int64_t>(elements_per_channel(), 1);
  values.insert(values.end(), {{"first", reduction.FirstText("o")},
                               {"term", reduction.TermText("e")},
                               {"Index", IndexType(std::max(elements, tile.Tiles() * 256))},
                               {"channels", std::to_string(channels())},
                               {"count", fmt::format("R({}.0)", count)},
                               {"T", StorageType(dtype)}});
  return values;
}

ChannelShape ShapeOfChannels(const TensorType& x, LayoutId layout) {
  AxisView view = ViewAxis(x.dims, 1);
  if (layout == kChannelsLast) view = {view.outer * view.inner, view.extent, 1};
  ChannelShape shape{
      .view = view,
      .reduction = ViewReduction({view.outer, view.extent, view.inner}, {true, false, true}),
      .tile = {},
      .elements = x.elements()};
  const int64_t bytes = BytesPerElement(x.dtype);
  shape.tile = TileOf(shape.reduction, bytes, kMostBlocks, /*least_wide=*/16);
  shape.pack = static_cast<int>(std::max(kElementPackBytes / bytes, int64_t{1}));
  const int64_t run = shape.in_columns() ? shape.channels() : shape.elements;
  while (run % shape.pack != 0) shape.pack /= 2;
  return shape;
}

namespace {

int64_t BlocksOf(const ChannelShape& shape, int64_t each) {
  const int64_t blocks = BlocksFor(CeilDiv(shape.elements / shape.pack, each));
  if (!shape.in_columns()) return blocks;
  const int64_t groups = shape.channels() / shape.pack;
  return RoundUp(blocks, groups / std::gcd(groups, int64_t{kBlockThreads}));
}

std::string ChannelOfElement(const ChannelShape& shape, const std::string& of_channel) {
  if (shape.in_columns()) return "const Channel channel = channels[k];";
  return fmt::format("const $Index c = {};\n        const Channel channel = {};",
                     ChannelText(shape), of_channel);
}

}  // namespace

void AppendElements(const ChannelShape& shape, DType dtype, const ChannelOperands& operands,
                    const ElementsPass& pass, KernelText& text) {
  const auto inputs = static_cast<int64_t>(pass.inputs.size());
  const int64_t each =
      PacksAhead(shape.elements / shape.pack, inputs * shape.pack * BytesPerElement(dtype));
  std::string packs, loads;
  for (const std::string& input : pass.inputs) {
    packs += fmt::format("    Pack<$T, $elements_pack> p_{}[{}];\n", input, each);
    loads += fmt::format("        p_{0}[j] = LoadPack<$elements_pack>({0}, group);\n", input);
  }
  TextValues values = shape.Values(dtype);
  values.insert(values.end(),
                {{"name", pass.name},
                 {"parameters", operands.parameters},
                 {"groups", std::to_string(shape.elements / shape.pack)},
                 {"each", std::to_string(each)},
                 {"elements_pack", std::to_string(shape.pack)},
                 {"groups_of_channels", std::to_string(shape.channels() / shape.pack)},
                 {"of_channel", pass.channel},
                 {"out", pass.out}});
  values.emplace_back("own_packs", FillText(packs, values));
  values.emplace_back("loads", FillText(loads, values));
  values.emplace_back("own_channels", shape.in_columns() ? FillText(kOwnChannels, values) : "");
  values.emplace_back("channel", FillText(ChannelOfElement(shape, pass.channel), values));
  values.emplace_back("value", FillText(pass.value, values));
  text.source += FillText(kElementsText, values);
  text.launches.push_back({pass.name, BlocksOf(shape, each), kBlockThreads, operands.arguments});
}

}  // namespace ridge::cuda
