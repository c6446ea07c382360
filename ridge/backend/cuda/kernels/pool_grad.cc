// max_pool_grad, avg_pool_grad: each element of dx gathers from the windows that hold it, in their
// order; in channels-last each pack of channels at a position.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/pool_text.h"
#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

// Group g: channels of an input position of a plane; row-major planes have one channel.
constexpr std::string_view kPoolGradText = R"cuda(
typedef $R R;
RIDGE_KERNEL void pool_grad($index_parameter const $T* dy, $T* dx) {
  for (Index g = (Index)Thread(); g < $groups; g += (Index)Threads()) {
    const Index own = g % $groups_of_channels, e = g / $groups_of_channels;
    const Index x = e % AxisX::kInput, y = e / AxisX::kInput % AxisY::kInput;
    const Index z = e / (AxisX::kInput * AxisY::kInput) % AxisZ::kInput;
    const Index plane = e / $inputs_of_plane * $outputs_of_plane;
    R sums[$pack];
#pragma unroll
    for (int k = 0; k < $pack; ++k) sums[k] = 0;
    const Index y1 = AxisY::EndOutput(y), x1 = AxisX::EndOutput(x);
    for (Index oz = AxisZ::FirstOutput(z); oz < AxisZ::EndOutput(z); ++oz) {
      const Index kz = AxisZ::TapAt(oz, z);
      if (kz < 0) continue;
      for (Index y0 = AxisY::FirstOutput(y); y0 < y1; y0 += $rows)
        for (Index x0 = AxisX::FirstOutput(x); x0 < x1; x0 += $columns) {
          Pack<$T, $pack> slopes[$outputs];
$declare#pragma unroll
          for (int i = 0; i < $outputs; ++i) {
            const Index oy = y0 + i / $columns, ox = x0 + i % $columns;
            if (oy < y1 && ox < x1) {
              const Index o = plane + (oz * AxisY::kOutput + oy) * AxisX::kOutput + ox;
              const Index at = o * $groups_of_channels + own;
              slopes[i] = LoadPack<$pack>(dy, at);
              $load
            }
          }
#pragma unroll
          for (int i = 0; i < $outputs; ++i) {
            const Index oy = y0 + i / $columns, ox = x0 + i % $columns;
            const Index ky = AxisY::TapAt(oy, y), kx = AxisX::TapAt(ox, x);
            if (oy >= y1 || ox >= x1 || ky < 0 || kx < 0) continue;
$add          }
        }
    }
    Pack<$T, $pack> q;
#pragma unroll
    for (int k = 0; k < $pack; ++k) Store(q.at, k, sums[k]);
    StorePack(dx, g, q);
  }
}
)cuda";

constexpr const char* kDeclareTaps = "          Pack<$I, $pack> taps[$outputs];\n";
constexpr const char* kLoadTaps = "taps[i] = LoadPack<$pack>(index, at);";
constexpr const char* kAddWinner = R"cuda(
            const Index tap = (kz * AxisY::kKernel + ky) * AxisX::kKernel + kx;
#pragma unroll
            for (int k = 0; k < $pack; ++k)
              if ((Index)taps[i].at[k] == tap) sums[k] += (R)Load(slopes[i].at, k);
)cuda";
constexpr const char* kAddShare = R"cuda(
            const Index counted = AxisZ::Taps(oz) * AxisY::Taps(oy) * AxisX::Taps(ox);
#pragma unroll
            for (int k = 0; k < $pack; ++k)
              sums[k] += (R)Load(slopes[i].at, k) / (R)(counted > 1 ? counted : 1);
)cuda";

// Outputs along an axis whose windows hold a position, of which so many are loaded before one is
// used.
int64_t OutputsAtOnce(const WindowAxis& axis) {
  constexpr int64_t kMost = 3;
  return std::clamp<int64_t>(CeilDiv(axis.span(), axis.stride), 1, kMost);
}

// `channels` lie side by side.
const char* WriteGrad(const OpDef& op, const OpCall& call, int64_t channels, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const bool max = op.name == "max_pool_grad";
  const PoolGeometry g = PoolGeometryOf(call);
  const TensorType& dx = call.outputs[0];
  const int64_t pack = ChannelPack(channels, dx.dtype), groups = dx.elements() / pack;
  const char* index = max ? StorageType(call.inputs[0].dtype) : "int";
  TextValues values = {{"T", StorageType(dx.dtype)},
                       {"R", ComputeType(dx.dtype)},
                       {"I", index},
                       {"index_parameter", max ? fmt::format("const {}* index,", index) : ""},
                       {"pack", std::to_string(pack)},
                       {"groups", std::to_string(groups)},
                       {"groups_of_channels", std::to_string(channels / pack)},
                       {"outputs_of_plane", std::to_string(g.window.outputs())},
                       {"inputs_of_plane", std::to_string(g.window.inputs())}};
  const int64_t rows = OutputsAtOnce(g.window.y()), columns = OutputsAtOnce(g.window.x());
  values.insert(values.end(), {{"rows", std::to_string(rows)},
                               {"columns", std::to_string(columns)},
                               {"outputs", std::to_string(rows * columns)}});
  values.emplace_back("declare", max ? FillText(kDeclareTaps, values) : "");
  values.emplace_back("load", max ? FillText(kLoadTaps, values) : "");
  values.emplace_back("add", FillText(max ? kAddWinner : kAddShare, values));
  text.source = PoolAxesText(g, !max && call.integer("count_include_pad") != 0) +
                FillText(kPoolGradText, values);
  std::vector<Argument> arguments = {Argument::Input(0)};
  if (max) arguments.push_back(Argument::Input(1));
  arguments.push_back(Argument::Output(0));
  text.launches = {{"pool_grad", BlocksFor(groups), kBlockThreads, arguments}};
  return nullptr;
}

const char* WritePoolGrad(const OpDef& op, const OpCall& call, KernelText& text) {
  return WriteGrad(op, call, /*channels=*/1, text);
}

const char* WritePoolGradChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& dx = call.outputs[0];
  return HasLayouts(dx) ? WriteGrad(op, call, dx.dims[1], text) : refusal::kLayout;
}

}  // namespace

TextKernelDef PoolGradTextKernel() {
  return {.name = "cuda.pool_grad",
          .ops = {"max_pool_grad", "avg_pool_grad"},
          .write = WritePoolGrad,
          .write_channels_last = WritePoolGradChannelsLast};
}

}  // namespace ridge::cuda
