// cumsum, cumprod and cumprod_grad: a block scans a line in tiles, by warps; where there are many
// lines, or short ones, a thread walks each.
//
// What a scan carries is a monoid, so that any order of joins gives the same but for rounding.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kManyLines = 8192, kShortLine = 64;

constexpr std::string_view kScanFunctions = R"cuda(
typedef $R R;
struct Sums {
  struct Acc { R value; };
  static RIDGE_FUNCTION Acc Empty() { Acc acc = {R(0)}; return acc; }
  static RIDGE_FUNCTION Acc Join(Acc a, Acc b) { Acc acc = {a.value + b.value}; return acc; }
  static RIDGE_FUNCTION Acc BlockUp(Acc a, int lanes) {
    Acc acc = {__shfl_up_sync(0xffffffffu, a.value, lanes)};
    return acc;
  }
};
struct Products {
  struct Acc { R value; };
  static RIDGE_FUNCTION Acc Empty() { Acc acc = {R(1)}; return acc; }
  static RIDGE_FUNCTION Acc Join(Acc a, Acc b) { Acc acc = {a.value * b.value}; return acc; }
  static RIDGE_FUNCTION Acc BlockUp(Acc a, int lanes) {
    Acc acc = {__shfl_up_sync(0xffffffffu, a.value, lanes)};
    return acc;
  }
};
// z -> factor z + value; a is applied first.
struct Maps {
  struct Acc { R factor, value; };
  static RIDGE_FUNCTION Acc Empty() { Acc acc = {R(1), R(0)}; return acc; }
  static RIDGE_FUNCTION Acc Join(Acc a, Acc b) {
    Acc acc = {a.factor * b.factor, b.factor * a.value + b.value};
    return acc;
  }
  static RIDGE_FUNCTION Acc BlockUp(Acc a, int lanes) {
    Acc acc = {__shfl_up_sync(0xffffffffu, a.factor, lanes),
               __shfl_up_sync(0xffffffffu, a.value, lanes)};
    return acc;
  }
};
// What the threads before this one have; `all`: what all have.  `scratch` holds 32.
template <class M>
RIDGE_FUNCTION typename M::Acc BlockScan(typename M::Acc own, typename M::Acc* scratch,
                                         typename M::Acc& all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const typename M::Acc other = M::BlockUp(own, distance);
    if (lane >= distance) own = M::Join(other, own);
  }
  typename M::Acc before = M::BlockUp(own, 1), ahead = M::Empty();
  if (lane == 0) before = M::Empty();
  if (lane == 31) scratch[warp] = own;
  __syncthreads();
  all = M::Empty();
  for (int w = 0; w < warps; ++w) {
    if (w == warp) ahead = all;
    all = M::Join(all, scratch[w]);
  }
  __syncthreads();
  return M::Join(ahead, before);
}
)cuda";

// Element `at` is the k-th from where the scan starts; `before` is what those before it have.
constexpr std::string_view kBlockScanText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  __shared__ $M::Acc scratch[32];
  for (i64 line = blockIdx.x; line < $lines; line += gridDim.x) {
    const i64 first = line / $inner * ($extent * $inner) + line % $inner;
    $M::Acc carried = $M::Empty(), all;
    for (i64 from = 0; from < $extent; from += blockDim.x) {
      const i64 k = from + threadIdx.x, at = first + ($place) * $inner;
      const bool counts = k < $extent;
      $M::Acc own = $M::Empty();
      if (counts) {
        $load
      }
      const $M::Acc before = $M::Join(carried, BlockScan<$M>(own, scratch, all));
      if (counts) {
        $store
      }
      carried = $M::Join(carried, all);
    }
  }
}
)cuda";

constexpr std::string_view kThreadScanText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  for (i64 line = Thread(); line < $lines; line += Threads()) {
    const i64 first = line / $inner * ($extent * $inner) + line % $inner;
    $M::Acc before = $M::Empty();
    for (i64 k = 0; k < $extent; ++k) {
      const i64 at = first + ($place) * $inner;
      $M::Acc own;
      $load
      $store
      before = $M::Join(before, own);
    }
  }
}
)cuda";

struct ScanLinesText {
  AxisView view;
  int64_t lines;
  bool by_blocks;

  explicit ScanLinesText(const OpCall& call)
      : view(ViewAxis(call.inputs[0].dims, CallAxis(call))),
        lines(view.outer * view.inner),
        by_blocks(view.extent > kShortLine && lines < kManyLines) {}

  // `load` sets `own`.
  void AddPass(KernelText& text, const std::string& name, const char* monoid, bool reverse,
               const std::string& parameters, const std::string& load, const std::string& store,
               std::vector<Argument> arguments) const {
    text.source += FillText(by_blocks ? kBlockScanText : kThreadScanText,
                            {{"name", name},
                             {"parameters", parameters},
                             {"M", monoid},
                             {"lines", std::to_string(lines)},
                             {"inner", fmt::format("{}ll", view.inner)},
                             {"extent", fmt::format("{}ll", view.extent)},
                             {"place", reverse ? fmt::format("{}ll - k", view.extent - 1) : "k"},
                             {"load", load},
                             {"store", store}});
    text.launches.push_back({name, by_blocks ? BlocksForRows(lines) : BlocksFor(lines),
                             kBlockThreads, std::move(arguments)});
  }
};

const char* WriteScan(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  if (!StoresAll(call)) return refusal::kDType;
  const ScanLinesText lines(call);
  const bool sums = op.name == "cumsum", exclusive = call.integer("exclusive") != 0;
  const char* monoid = sums ? "Sums" : "Products";
  const char* stored = StorageType(x.dtype);
  text.source =
      FillText(kScanFunctions, {{"R", IsFloat(x.dtype) ? ComputeType(x.dtype) : "double"}});
  lines.AddPass(text, op.name, monoid, call.integer("reverse") != 0,
                fmt::format("const {0}* x, {0}* y", stored), "own.value = (R)Load(x, at);",
                exclusive ? "Store(y, at, before.value);"
                          : fmt::format("Store(y, at, {}::Join(before, own).value);", monoid),
                {Argument::Input(0), Argument::Output(0)});
  return nullptr;
}

// The products of all before each element go to workspace; what comes after it is a chain of maps.
const char* WriteProductGrad(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const ScanLinesText lines(call);
  const bool reverse = call.integer("reverse") != 0, exclusive = call.integer("exclusive") != 0;
  const char* stored = StorageType(x.dtype);
  text.source = FillText(kScanFunctions, {{"R", ComputeType(x.dtype)}});
  text.workspace_bytes = RoundUp(x.elements() * (x.dtype == DType::kF64 ? 8 : 4), 256);
  lines.AddPass(text, "products", "Products", reverse,
                fmt::format("const {}* x, R* products", stored), "own.value = (R)Load(x, at);",
                "products[at] = before.value;", {Argument::Input(0), Argument::Workspace()});
  const char* load = exclusive ? "own.factor = (R)Load(x, at);\n"
                                 "        own.value = (R)Load(dy, at);"
                               : "own.factor = (R)Load(x, at);\n"
                                 "        own.value = own.factor * (R)Load(dy, at);";
  const char* store = exclusive ? "Store(dx, at, products[at] * before.value);"
                                : "Store(dx, at, products[at] * (before.value + (R)Load(dy, at)));";
  lines.AddPass(
      text, "product_grads", "Maps", !reverse,
      fmt::format("const {0}* x, const {0}* dy, const R* products, {0}* dx", stored), load, store,
      {Argument::Input(0), Argument::Input(1), Argument::Workspace(), Argument::Output(0)});
  return nullptr;
}

}  // namespace

TextKernelDef ScanTextKernel() {
  return {.name = "cuda.scan", .ops = {"cumsum", "cumprod"}, .write = WriteScan};
}

TextKernelDef ProductGradTextKernel() {
  return {.name = "cuda.cumprod_grad", .ops = {"cumprod_grad"}, .write = WriteProductGrad};
}

}  // namespace ridge::cuda
