// interpolate: a thread sums the places of an output in the order of its table, which is part of
// the text.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr size_t kMostEntries = 1 << 18;  // of a table in a text

// x: [outer, extent, inner].  y: [outer, rows, inner].
constexpr std::string_view kInterpolateText = R"cuda(
typedef $R R;
typedef $Index Index;
__device__ const int kStarts[] = {$starts};
__device__ const int kPlaces[] = {$places};
__device__ const R kWeights[] = {$weights};
RIDGE_KERNEL void interpolate(const $T* x, $T* y) {
  for (Index e = (Index)Thread(); e < $count; e += (Index)Threads()) {
    const Index row = e / $inner % $rows, o = e / $inner / $rows, i = e % $inner;
    R sum = 0;
    for (int k = kStarts[row]; k < kStarts[row + 1]; ++k)
      sum += kWeights[k] * (R)Load(x, (o * $extent + kPlaces[k]) * $inner + i);
    Store(y, e, sum);
  }
}
)cuda";

// An array of no elements has one that nobody reads.
template <typename T>
std::string List(const std::vector<T>& values) {
  return values.empty() ? "0" : fmt::format("{}", fmt::join(values, ","));
}

const char* WriteAlong(const AxisView& view, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  if (!StoresAll(call)) return refusal::kDType;
  const std::vector<int64_t>&starts = call.integers("starts"), &places = call.integers("places");
  if (starts.size() + places.size() > kMostEntries || view.extent >= int64_t{1} << 31)
    return refusal::kSize;
  std::vector<std::string> weights;
  for (const double weight : std::get<std::vector<double>>(call.attrs.at("weights")))
    weights.push_back(Literal(weight));
  text.source =
      FillText(kInterpolateText, {{"R", ComputeType(x.dtype)},
                                  {"T", StorageType(x.dtype)},
                                  {"Index", IndexType(std::max(x.elements(), y.elements()))},
                                  {"starts", List(starts)},
                                  {"places", List(places)},
                                  {"weights", List(weights)},
                                  {"count", std::to_string(y.elements())},
                                  {"rows", std::to_string(starts.size() - 1)},
                                  {"extent", std::to_string(view.extent)},
                                  {"inner", std::to_string(view.inner)}});
  text.launches = {{"interpolate",
                    BlocksFor(y.elements()),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Output(0)}}};
  return nullptr;
}

const char* WriteInterpolate(const OpDef&, const OpCall& call, KernelText& text) {
  return WriteAlong(ViewAxis(call.inputs[0].dims, CallAxis(call)), call, text);
}

const char* WriteInterpolateChannelsLast(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  if (!HasLayouts(x)) return refusal::kLayout;
  const int axis = ChannelsLastPlace(CallAxis(call), x.rank());
  return WriteAlong(ViewAxis(StoredChannelsLast(x).dims, axis), call, text);
}

}  // namespace

TextKernelDef InterpolateTextKernel() {
  return {.name = "cuda.interpolate",
          .ops = {"interpolate"},
          .write = WriteInterpolate,
          .write_channels_last = WriteInterpolateChannelsLast};
}

}  // namespace ridge::cuda
