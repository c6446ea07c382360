// max_pool, avg_pool: a thread takes an output; where a window has many taps, a warp.  In
// channels-last it takes a pack of channels at a position.
#include <algorithm>

#include "ridge/backend/cuda/kernels/pool_text.h"
#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kManyTaps = 32;
constexpr int64_t kMostUnrolled = 4;  // taps of a row that are loaded before one is used, and rows

constexpr std::string_view kPoolFunctions = R"cuda(
typedef $T T;
typedef $R R;
typedef $I I;
// Of a window: the sum of its elements, or the first largest one, NaN before all, and its tap.
struct Pooled {
  R value;
  int tap;
};
RIDGE_FUNCTION Pooled Empty() { return {$empty, 0x7fffffff}; }
RIDGE_FUNCTION Pooled Joined(Pooled a, Pooled b) {
#if $is_max
  if (a.tap == 0x7fffffff || b.tap == 0x7fffffff) return a.tap < b.tap ? a : b;
  if (IsNan(a.value) || IsNan(b.value))
    return IsNan(a.value) && (!IsNan(b.value) || a.tap < b.tap) ? a : b;
  if (a.value == b.value) return a.tap < b.tap ? a : b;
  return a.value > b.value ? a : b;
#else
  return {a.value + b.value, 0};
#endif
}
)cuda";

constexpr std::string_view kPoolOfThread = R"cuda(
RIDGE_KERNEL void pool(const T* x, T* y$index_parameter) {
  for (Index e = (Index)Thread(); e < $outputs; e += (Index)Threads()) {
    const Index ox = e % AxisX::kOutput, oy = e / AxisX::kOutput % AxisY::kOutput;
    const Index oz = e / (AxisX::kOutput * AxisY::kOutput) % AxisZ::kOutput;
    const T* plane = x + (i64)(e / $outputs_of_plane) * $inputs_of_plane;
    Pooled pooled = Empty();
    for (Index kz = AxisZ::FirstTap(oz); kz < AxisZ::EndTap(oz); ++kz)
      for (Index ky = AxisY::FirstTap(oy); ky < AxisY::EndTap(oy); ++ky)
        for (Index kx = AxisX::FirstTap(ox); kx < AxisX::EndTap(ox); ++kx) {
          const Index from = (AxisZ::At(oz, kz) * AxisY::kInput + AxisY::At(oy, ky)) * AxisX::kInput +
                             AxisX::At(ox, kx);
          const int tap = (int)((kz * AxisY::kKernel + ky) * AxisX::kKernel + kx);
          pooled = Joined(pooled, {(R)Load(plane, from), tap});
        }
    $store
  }
}
)cuda";

// Lanes take taps inside x in turn; all of a warp come to each exchange.
constexpr std::string_view kPoolOfWarp = R"cuda(
RIDGE_FUNCTION Pooled BlockJoinedLanes(Pooled pooled) {
  for (int distance = 16; distance > 0; distance >>= 1) {
    const R value = __shfl_xor_sync(0xffffffffu, pooled.value, distance);
    const int tap = __shfl_xor_sync(0xffffffffu, pooled.tap, distance);
    const Pooled other = {value, tap};
    pooled = threadIdx.x & distance ? Joined(other, pooled) : Joined(pooled, other);
  }
  return pooled;
}
RIDGE_KERNEL void pool(const T* x, T* y$index_parameter) {
  const Index lane = threadIdx.x % 32;
  for (Index e = (Index)(Thread() / 32); e < $outputs; e += (Index)(Threads() / 32)) {
    const Index ox = e % AxisX::kOutput, oy = e / AxisX::kOutput % AxisY::kOutput;
    const Index oz = e / (AxisX::kOutput * AxisY::kOutput) % AxisZ::kOutput;
    const T* plane = x + (i64)(e / $outputs_of_plane) * $inputs_of_plane;
    const Index z = AxisZ::FirstTap(oz), y0 = AxisY::FirstTap(oy), x0 = AxisX::FirstTap(ox);
    const Index nz = AxisZ::EndTap(oz) - z, ny = AxisY::EndTap(oy) - y0, nx = AxisX::EndTap(ox) - x0;
    const Index taps = nz > 0 && ny > 0 && nx > 0 ? nz * ny * nx : 0;
    Pooled pooled = Empty();
    for (Index t = lane; t < taps; t += 32) {
      const Index kx = x0 + t % nx, ky = y0 + t / nx % ny, kz = z + t / (nx * ny);
      const Index from = (AxisZ::At(oz, kz) * AxisY::kInput + AxisY::At(oy, ky)) * AxisX::kInput +
                         AxisX::At(ox, kx);
      const int tap = (int)((kz * AxisY::kKernel + ky) * AxisX::kKernel + kx);
      pooled = Joined(pooled, {(R)Load(plane, from), tap});
    }
    pooled = BlockJoinedLanes(pooled);
    if (lane == 0) {
      $store
    }
  }
}
)cuda";

// Group g: channels of an output position of a sample, all stored last.
constexpr std::string_view kPoolOfChannels = R"cuda(
RIDGE_KERNEL void pool(const T* x, T* y$index_parameter) {
  for (Index g = (Index)Thread(); g < $groups; g += (Index)Threads()) {
    const Index own = g % $groups_of_channels, o = g / $groups_of_channels;
    const Index ox = o % AxisX::kOutput, oy = o / AxisX::kOutput % AxisY::kOutput;
    const Index oz = o / (AxisX::kOutput * AxisY::kOutput) % AxisZ::kOutput;
    const T* sample = x + (i64)(o / $outputs_of_plane) * ($inputs_of_plane * (i64)$channels);
    const Index z0 = AxisZ::FirstTap(oz), y0 = AxisY::FirstTap(oy), x0 = AxisX::FirstTap(ox);
    const Index z1 = AxisZ::EndTap(oz), y1 = AxisY::EndTap(oy), x1 = AxisX::EndTap(ox);
    R values[$pack];
    int taps[$pack];
#pragma unroll
    for (int k = 0; k < $pack; ++k) {
      values[k] = $empty;
      taps[k] = z0 < z1 && y0 < y1 && x0 < x1
                    ? (int)((z0 * AxisY::kKernel + y0) * AxisX::kKernel + x0) : 0;
    }
    for (Index kz = z0; kz < z1; ++kz) {
#pragma unroll $rows
      for (Index ky = 0; ky < AxisY::kKernel; ++ky) {
        const Index row = (AxisZ::At(oz, kz) * AxisY::kInput + AxisY::At(oy, ky)) * AxisX::kInput;
        for (Index begin = 0; begin < AxisX::kKernel; begin += $taps) {
          Pack<T, $pack> p[$taps];
          bool inside[$taps];
#pragma unroll
          for (int i = 0; i < $taps; ++i) {
            const Index kx = begin + i;
            inside[i] = ky >= y0 && ky < y1 && kx >= x0 && kx < x1;
            if (inside[i])
              p[i] = LoadPack<$pack>(sample, (row + AxisX::At(ox, kx)) * $groups_of_channels + own);
          }
#pragma unroll
          for (int i = 0; i < $taps; ++i) {
            if (!inside[i]) continue;
            const int tap = (int)((kz * AxisY::kKernel + ky) * AxisX::kKernel + begin + i);
#pragma unroll
            for (int k = 0; k < $pack; ++k) {
              const R v = (R)Load(p[i].at, k);
              $join
            }
          }
        }
      }
    }
    Pack<T, $pack> q;
    $store
    StorePack(y, g, q);
  }
}
)cuda";

// The first largest one, NaN before all.
constexpr const char* kJoinMax = R"cuda(if (!(v <= values[k]) && !IsNan(values[k])) {
                values[k] = v;
                taps[k] = tap;
              })cuda";
constexpr const char* kJoinMean = "values[k] += v;";

constexpr const char* kStoreMaxPack = R"cuda(Pack<I, $pack> index_pack;
#pragma unroll
    for (int k = 0; k < $pack; ++k) {
      Store(q.at, k, values[k]);
      index_pack.at[k] = (I)taps[k];
    }
    StorePack(index, g, index_pack);)cuda";
constexpr const char* kStoreMeanPack = R"cuda(
    const Index counted = AxisZ::Taps(oz) * AxisY::Taps(oy) * AxisX::Taps(ox);
#pragma unroll
    for (int k = 0; k < $pack; ++k) Store(q.at, k, values[k] / (R)(counted > 1 ? counted : 1));)cuda";

constexpr const char* kStoreMax =
    "Store(y, e, pooled.value);\n    index[e] = pooled.tap == 0x7fffffff ? (I)0 : (I)pooled.tap;";
constexpr const char* kStoreMean =
    "const Index counted = AxisZ::Taps(oz) * AxisY::Taps(oy) * AxisX::Taps(ox);\n"
    "    Store(y, e, pooled.value / (R)(counted > 1 ? counted : 1));";

std::string AxesAndFunctions(const PoolGeometry& g, bool max, const OpCall& call) {
  const TensorType& y = call.outputs[0];
  return PoolAxesText(g, !max && call.integer("count_include_pad") != 0) +
         FillText(kPoolFunctions, {{"T", StorageType(y.dtype)},
                                   {"R", ComputeType(y.dtype)},
                                   {"I", max ? StorageType(call.outputs[1].dtype) : "int"},
                                   {"empty", max ? "-Infinity<R>()" : "R(0)"},
                                   {"is_max", max ? "1" : "0"}});
}

std::vector<Argument> ArgumentsOf(bool max) {
  std::vector<Argument> arguments = {Argument::Input(0), Argument::Output(0)};
  if (max) arguments.push_back(Argument::Output(1));
  return arguments;
}

const char* WritePool(const OpDef& op, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const bool max = op.name == "max_pool";
  const PoolGeometry g = PoolGeometryOf(call);
  const bool of_warp = g.window.taps() >= kManyTaps;
  const int64_t outputs = call.outputs[0].elements();
  text.source = AxesAndFunctions(g, max, call) +
                FillText(of_warp ? kPoolOfWarp : kPoolOfThread,
                         {{"index_parameter", max ? ", I* index" : ""},
                          {"outputs", std::to_string(outputs)},
                          {"outputs_of_plane", std::to_string(g.window.outputs())},
                          {"inputs_of_plane", std::to_string(g.window.inputs())},
                          {"store", max ? kStoreMax : kStoreMean}});
  text.launches = {
      {"pool", BlocksFor(of_warp ? outputs * 32 : outputs), kBlockThreads, ArgumentsOf(max)}};
  return nullptr;
}

const char* WritePoolChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const TensorType& y = call.outputs[0];
  // Outputs of one position are row-major in both layouts; x may still be in channels-last.
  if (!HasLayouts(call.inputs[0])) return refusal::kLayout;
  const bool max = op.name == "max_pool";
  const PoolGeometry g = PoolGeometryOf(call);
  const int64_t pack = ChannelPack(g.channels, y.dtype), groups = y.elements() / pack;
  TextValues values = {{"index_parameter", max ? ", I* index" : ""},
                       {"pack", std::to_string(pack)},
                       {"groups", std::to_string(groups)},
                       {"groups_of_channels", std::to_string(g.channels / pack)},
                       {"channels", std::to_string(g.channels)},
                       {"outputs_of_plane", std::to_string(g.window.outputs())},
                       {"inputs_of_plane", std::to_string(g.window.inputs())},
                       {"empty", max ? "-Infinity<R>()" : "R(0)"},
                       {"join", max ? kJoinMax : kJoinMean},
                       {"rows", std::to_string(std::min(g.window.y().kernel, kMostUnrolled))},
                       {"taps", std::to_string(std::min(g.window.x().kernel, kMostUnrolled))}};
  values.emplace_back("store", FillText(max ? kStoreMaxPack : kStoreMeanPack, values));
  text.source = AxesAndFunctions(g, max, call) + FillText(kPoolOfChannels, values);
  text.launches = {{"pool", BlocksFor(groups), kBlockThreads, ArgumentsOf(max)}};
  return nullptr;
}

}  // namespace

TextKernelDef PoolTextKernel() {
  return {.name = "cuda.pool",
          .ops = {"max_pool", "avg_pool"},
          .write = WritePool,
          .write_channels_last = WritePoolChannelsLast};
}

}  // namespace ridge::cuda
