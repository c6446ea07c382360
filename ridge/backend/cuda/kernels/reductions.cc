// Reductions and argmax: a block takes a tile of outputs and joins their terms; where there are few
// outputs, partial results go to workspace and a second pass joins them.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge::cuda {
namespace {

// As many blocks as an H200 holds at once, where threads have 64 registers.
constexpr int64_t kMostTiles = kMostBlocks / 2;

// What is kept of some terms; Of() makes it of one, Join() of two, ValueOf() the output.
constexpr std::string_view kSimpleAccumulator = R"cuda(
typedef $R R;
struct Acc { R value; };
RIDGE_FUNCTION Acc Empty() { Acc acc = {$empty}; return acc; }
RIDGE_FUNCTION Acc Of(R x, i64) { Acc acc = {x}; return acc; }
struct Join {
  RIDGE_FUNCTION Acc operator()(Acc p, Acc q) const {
    const R a = p.value, b = q.value;
    Acc acc = {$join};
    return acc;
  }
};
RIDGE_FUNCTION R ValueOf(Acc acc) { return $value; }
)cuda";

// The largest, and the sum of exp(x - largest).
constexpr std::string_view kLogSumExpAccumulator = R"cuda(
typedef $R R;
struct Acc { R largest, sum; };
RIDGE_FUNCTION Acc Empty() { Acc acc = {-Infinity<R>(), R(0)}; return acc; }
RIDGE_FUNCTION Acc Of(R x, i64) { Acc acc = {x, R(1)}; return acc; }
struct Join {
  RIDGE_FUNCTION Acc operator()(Acc a, Acc b) const {
    if (IsNan(a.largest)) return a;
    if (IsNan(b.largest)) return b;
    const bool second = b.largest > a.largest;
    const Acc high = second ? b : a, low = second ? a : b;
    const R share = high.largest == low.largest ? R(1) : exp(low.largest - high.largest);
    Acc acc = {high.largest, high.sum + low.sum * share};
    return acc;
  }
};
RIDGE_FUNCTION R ValueOf(Acc acc) {
  const bool finite = fabs(acc.largest) < Infinity<R>();
  return finite ? acc.largest + log(acc.sum) : acc.largest;
}
)cuda";

// The largest and its place; NaN counts as largest, the first of equals wins.
constexpr std::string_view kArgmaxAccumulator = R"cuda(
typedef $R R;
struct Acc { R value; i64 place; };
RIDGE_FUNCTION Acc Empty() {
  Acc acc = {-Infinity<R>(), 0x7fffffffffffffffll};
  return acc;
}
RIDGE_FUNCTION Acc Of(R x, i64 place) { Acc acc = {x, place}; return acc; }
struct Join {
  RIDGE_FUNCTION Acc operator()(Acc a, Acc b) const {
    const bool equal = a.value == b.value || (IsNan(a.value) && IsNan(b.value));
    if (equal) return a.place < b.place ? a : b;
    return IsNan(a.value) || a.value > b.value ? a : b;
  }
};
RIDGE_FUNCTION double ValueOf(Acc acc) { return (double)acc.place; }
)cuda";

constexpr std::string_view kReduceText = R"cuda(
RIDGE_KERNEL __launch_bounds__($threads, $resident) void $name(const $T* x, $U* y) {
  typedef $own Own;
  __shared__ Acc scratch[$scratch];
  for ($Index tile = blockIdx.x; tile < $tiles; tile += gridDim.x) {
    const $Index part = tile % $parts, o = (tile / $parts * $columns + Own::Column()) * $wide;
    Acc acc[$wide];
#pragma unroll
    for (int k = 0; k < $wide; ++k) acc[k] = Empty();
    if (o < $outputs) {
      const $Index first = $first, begin = part * $span;
      const $Index end = part == $parts - 1 ? $packs : begin + $span;
      for ($Index g = begin + Own::Lane(); g < end; g += $lanes * $ahead) {
        Pack<$T, $load> terms[$ahead];
#pragma unroll
        for (int j = 0; j < $ahead; ++j) {
          const $Index e = (g + j * $lanes) * $pack;
          if (g + j * $lanes < end) terms[j] = LoadPack<$load>(x + (first + $term), 0);
        }
#pragma unroll
        for (int j = 0; j < $ahead; ++j) {
          const $Index e = (g + j * $lanes) * $pack;
          if (g + j * $lanes < end) {
#pragma unroll
            for (int k = 0; k < $load; ++k) acc[$number] = Join()(acc[$number], $value);
          }
        }
      }
    }
    Own::BlockJoin(acc, scratch, Join());
    if (o < $outputs && Own::Lane() == 0) {
#pragma unroll
      for (int k = 0; k < $wide; ++k) $write;
    }
  }
}
)cuda";

struct Reduction {
  const char *op, *empty, *join, *value;
};
constexpr Reduction kReductions[] = {
    {"reduce_sum", "R(0)", "a + b", "acc.value"},
    {"reduce_mean", "R(0)", "a + b", "acc.value / R($width)"},
    {"reduce_max", "-Infinity<R>()", "Larger(a, b)", "acc.value"},
    {"reduce_min", "Infinity<R>()", "Smaller(a, b)", "acc.value"},
    {"reduce_prod", "R(1)", "a * b", "acc.value"},
};

std::string AccumulatorText(const std::string& op, const char* compute, int64_t width) {
  if (op == "argmax") return FillText(kArgmaxAccumulator, {{"R", compute}});
  if (op == "reduce_log_sum_exp") return FillText(kLogSumExpAccumulator, {{"R", compute}});
  for (const Reduction& one : kReductions) {
    if (op != one.op) continue;
    return FillText(kSimpleAccumulator,
                    {{"R", compute},
                     {"empty", one.empty},
                     {"join", one.join},
                     {"value", FillText(one.value, {{"width", fmt::format("{}.0", width)}})}});
  }
  return "";
}

std::string PassText(const ReduceTile& tile, const ReduceView& view, bool light,
                     TextValues values) {
  values.emplace_back("ahead", std::to_string(tile.Ahead(light ? kMostAhead : kMostAhead / 2)));
  for (auto& value : tile.Values()) values.push_back(std::move(value));
  values.emplace_back("resident", light ? "4" : "2");
  values.emplace_back("first", view.FirstText("o"));
  values.emplace_back("term", view.TermText("e"));
  const int64_t elements =
      std::max(tile.outputs * tile.width, tile.Tiles() * kBlockThreads * tile.wide);
  values.emplace_back("Index", IndexType(elements));
  return FillText(kReduceText, values);
}

struct ReducePasses {
  const TensorType& x;
  const TensorType& y;
  ReduceView view;
  ReduceTile tile;
  int64_t accumulator_bytes;
  bool light;  // accumulators of one float

  std::string FirstValue() const {
    return fmt::format("Of((R)Load(terms[j].at, k), {})", tile.wide == 1 ? "e + k" : "e");
  }

  void AddOnePass(KernelText& text) const {
    text.source += PassText(tile, view, light,
                            {{"name", "reduce"},
                             {"T", StorageType(x.dtype)},
                             {"U", StorageType(y.dtype)},
                             {"value", FirstValue()},
                             {"write", "Store(y, o + k, ValueOf(acc[k]))"}});
    text.launches = {
        {"reduce", tile.Blocks(), kBlockThreads, {Argument::Input(0), Argument::Output(0)}}};
  }

  void AddTwoPasses(KernelText& text) const {
    const ReduceTile join = TileOfParts(tile.outputs, tile.parts);
    const ReduceView parts = ViewReduction({tile.parts, tile.outputs}, {true, false});
    text.source +=
        PassText(tile, view, light,
                 {{"name", "reduce_parts"},
                  {"T", StorageType(x.dtype)},
                  {"U", "Acc"},
                  {"value", FirstValue()},
                  {"write", fmt::format("y[part * {} + o + k] = acc[k]", tile.outputs)}});
    text.source += PassText(join, parts, light,
                            {{"name", "join_parts"},
                             {"T", "Acc"},
                             {"U", StorageType(y.dtype)},
                             {"value", "terms[j].at[k]"},
                             {"write", "Store(y, o + k, ValueOf(acc[k]))"}});
    text.workspace_bytes = RoundUp(tile.outputs * tile.parts * accumulator_bytes, 256);
    text.launches = {
        {"reduce_parts", tile.Blocks(), kBlockThreads, {Argument::Input(0), Argument::Workspace()}},
        {"join_parts", join.Blocks(), kBlockThreads, {Argument::Workspace(), Argument::Output(0)}}};
  }
};

// Integers are added up in double, which is exact up to 2^53.
const char* ComputeTypeOfReduction(const OpCall& call) {
  return IsFloat(call.inputs[0].dtype) ? ComputeTypeOf(call) : "double";
}

std::vector<bool> ReducedDims(const OpDef& op, const OpCall& call) {
  if (op.name != "argmax") return *ReducedAxes(call);
  std::vector<bool> reduced(call.inputs[0].dims.size(), false);
  reduced[static_cast<size_t>(CallAxis(call))] = true;
  return reduced;
}

const char* WriteOver(const OpDef& op, const OpCall& call, const ReduceView& view,
                      KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const TensorType& x = call.inputs[0];
  const ReduceTile tile = TileOf(view, BytesPerElement(x.dtype), kMostTiles, kMostAhead);
  const std::string compute = ComputeTypeOfReduction(call);
  const bool simple = op.name != "argmax" && op.name != "reduce_log_sum_exp";
  const bool light = simple && compute == "float";
  const ReducePasses passes{x, call.outputs[0], view, tile, /*accumulator_bytes=*/16, light};
  text.source =
      std::string(ReduceTileText()) + AccumulatorText(op.name, compute.c_str(), view.width());
  if (tile.parts > 1) {
    passes.AddTwoPasses(text);
  } else {
    passes.AddOnePass(text);
  }
  return nullptr;
}

const char* WriteReduction(const OpDef& op, const OpCall& call, KernelText& text) {
  return WriteOver(op, call, ViewReduction(call.inputs[0].dims, ReducedDims(op, call)), text);
}

// Whether the output has its elements in the order in which x has what is reduced to them.
bool KeepsOrder(const OpCall& call, const std::vector<size_t>& order,
                const std::vector<bool>& reduced) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  std::vector<size_t> kept, of_y;  // dimensions of x
  for (const size_t d : order) {
    if (!reduced[d] && x.dims[d] != 1) kept.push_back(d);
  }
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (!reduced[d] || y.rank() == x.rank()) of_y.push_back(d);
  }
  std::vector<size_t> places(of_y.size());
  for (size_t d = 0; d < places.size(); ++d) places[d] = d;
  if (HasLayouts(y)) places = ChannelsLastOrder(y.rank());
  std::vector<size_t> written;
  for (const size_t place : places) {
    if (y.dims[place] != 1) written.push_back(of_y[place]);
  }
  return kept == written;
}

const char* WriteReductionChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  if (!HasLayouts(x)) return refusal::kLayout;
  const std::vector<bool> reduced = ReducedDims(op, call);
  const std::vector<size_t> order = ChannelsLastOrder(x.rank());
  if (!KeepsOrder(call, order, reduced)) return refusal::kLayout;
  std::vector<bool> stored;
  for (const size_t d : order) stored.push_back(reduced[d]);
  return WriteOver(op, call, ViewReduction(StoredChannelsLast(x).dims, stored), text);
}

}  // namespace

TextKernelDef ReductionsTextKernel() {
  return {.name = "cuda.reduce",
          .ops = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
                  "reduce_log_sum_exp", "argmax"},
          .write = WriteReduction,
          .write_channels_last = WriteReductionChannelsLast};
}

}  // namespace ridge::cuda
