#include "ridge/backend/cuda/layouts.h"

namespace ridge::cuda {
namespace {

constexpr size_t kChannels = 1;  // dimension

bool MayBeChannelsLast(const TensorType& type) { return type.rank() >= 3 && type.rank() <= 5; }

bool AnyOf(const std::vector<TensorType>& types, std::span<const LayoutId> layouts) {
  for (size_t i = 0; i < types.size() && i < layouts.size(); ++i) {
    if (layouts[i] == kChannelsLast && HasLayouts(types[i])) return true;
  }
  return false;
}

}  // namespace

bool HasLayouts(const TensorType& type) {
  if (!MayBeChannelsLast(type) || type.elements() == 0) return false;
  const int64_t channels = type.dims[kChannels];
  return channels > 1 && type.elements() > type.dims[0] * channels;
}

LayoutId ChannelsLastOf(const TensorType& type) {
  return HasLayouts(type) ? kChannelsLast : kRowMajor;
}

std::vector<size_t> ChannelsLastOrder(int rank) {
  std::vector<size_t> order = {0};
  for (size_t d = kChannels + 1; d < static_cast<size_t>(rank); ++d) order.push_back(d);
  order.push_back(kChannels);
  return order;
}

int ChannelsLastPlace(int d, int rank) {
  if (d == static_cast<int>(kChannels)) return rank - 1;
  return d > static_cast<int>(kChannels) ? d - 1 : d;
}

TensorType StoredChannelsLast(const TensorType& type) {
  RIDGE_CHECK(MayBeChannelsLast(type), "channels-last is of 3 to 5 dimensions");
  TensorType stored{type.dtype, {}};
  for (const size_t d : ChannelsLastOrder(type.rank())) stored.dims.push_back(type.dims[d]);
  return stored;
}

std::string LayoutNameOf(LayoutId layout) {
  return layout == kChannelsLast ? "channels_last" : "row_major";
}

bool AnyChannelsLast(const OpCall& call, std::span<const LayoutId> available) {
  return AnyOf(call.inputs, available);
}

bool IsChannelsLast(const OpCall& call, const KernelChoice& choice) {
  return AnyOf(call.inputs, choice.input_layouts) || AnyOf(call.outputs, choice.output_layouts);
}

void TakeEitherLayout(const OpCall& call, std::span<const LayoutId> available,
                      KernelChoice& choice) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!HasLayouts(call.inputs[i]))
      choice.input_layouts[i] = i < available.size() ? available[i] : kRowMajor;
  }
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    if (!HasLayouts(call.outputs[o])) choice.output_layouts[o] = kRowMajor;
  }
}

}  // namespace ridge::cuda
