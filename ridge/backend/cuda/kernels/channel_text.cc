#include "ridge/backend/cuda/kernels/channel_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kElementPackBytes = 16;
// A part is read twice where it should still lie in a cache, so parts are short.
constexpr int64_t kChannelTiles = 8 * kMostBlocks;

constexpr std::string_view kElementsText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  for ($Index group = Thread(); group < $groups; group += Threads()) {
    $load
    Pack<$T, $elements_pack> q;
#pragma unroll
    for (int k = 0; k < $elements_pack; ++k) {
      const $Index c = $channel;
      $value
    }
    StorePack($out, group, q);
  }
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

ChannelShape ShapeOfChannels(const TensorType& x) {
  std::vector<bool> reduced(x.dims.size(), true);
  reduced[1] = false;
  ChannelShape shape{.view = ViewAxis(x.dims, 1),
                     .reduction = ViewReduction(x.dims, reduced),
                     .tile = {},
                     .elements = x.elements()};
  const int64_t bytes = BytesPerElement(x.dtype),
                pack = std::max(kElementPackBytes / bytes, int64_t{1});
  shape.tile = TileOf(shape.reduction, bytes, kChannelTiles);
  shape.pack = shape.elements % pack == 0 ? static_cast<int>(pack) : 1;
  return shape;
}

std::string ElementsText(const ChannelShape& shape, DType dtype, const std::string& name,
                         const std::string& parameters, const std::string& load,
                         const std::string& value, const std::string& out) {
  TextValues values = shape.Values(dtype);
  values.insert(values.end(), {{"name", name},
                               {"parameters", parameters},
                               {"groups", std::to_string(shape.elements / shape.pack)},
                               {"elements_pack", std::to_string(shape.pack)},
                               {"channel", ChannelText(shape)},
                               {"out", out}});
  values.emplace_back("load", FillText(load, values));
  values.emplace_back("value", FillText(value, values));
  return FillText(kElementsText, values);
}

int64_t ElementsBlocks(const ChannelShape& shape) { return BlocksFor(shape.elements / shape.pack); }

}  // namespace ridge::cuda
