// layer_norm_grad and rms_norm_grad: a block takes a few rows at a time and adds up its share of
// dscale and dshift on the way, in registers where rows are short enough, else in workspace; a
// second pass joins the shares.  A thread works on the same elements of each of its rows.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kPackBytes = 16;
constexpr int64_t kKeptBytes = 64;                      // of the sums of dscale that a thread keeps
constexpr int64_t kMostRowThreads = 2 * kBlockThreads;  // of a row
constexpr int64_t kBytesAhead = 144;  // of x and dy, that a thread asks for at once
constexpr int64_t kMostAhead = 4;
constexpr int64_t kShares = 264;  // blocks of kBlockThreads, which write a share each

// A thread's packs of a row, which are kept; none, where the row is not `there`.
constexpr std::string_view kKeptRow = R"cuda(
template <class T> struct Row {
  Pack<T, $pack> kept[$each];
  RIDGE_FUNCTION void Take(const T* first, int lane, bool there) {
    const Pack<T, $pack> none = {};
    $each_group kept[j] = there ? LoadPack<$pack>(first, g) : none;
  }
  RIDGE_FUNCTION Pack<T, $pack> at(int j, $Index) const { return kept[j]; }
};
)cuda";

constexpr std::string_view kReadRow = R"cuda(
template <class T> struct Row {
  const T* p;
  RIDGE_FUNCTION void Take(const T* first, int, bool) { p = first; }
  RIDGE_FUNCTION Pack<T, $pack> at(int, $Index g) const { return LoadPack<$pack>(p, g); }
};
)cuda";

constexpr std::string_view kNormGradText = R"cuda(
struct RowSums { R sum, dot; };
RIDGE_KERNEL __launch_bounds__($block, $resident) void $name($parameters) {
  const int own = threadIdx.x / $threads, lane = threadIdx.x % $threads;
  $begin$half
  for (i64 first = (i64)blockIdx.x * $rows_at_once; first < $rows;
       first += (i64)gridDim.x * $rows_at_once) {
    Row<$T> own_x[$ahead];
    Row<$D> own_dy[$ahead];
    R means_of[$ahead], rstds_of[$ahead];
#pragma unroll
    for (int u = 0; u < $ahead; ++u) {
      const i64 row = first + u * $side + own;
      const bool there = row < $rows;
      own_x[u].Take(x + row * $extent, lane, there);
      own_dy[u].Take(dy + row * $extent, lane, there);
      means_of[u] = there ? $mean : R(0);
      rstds_of[u] = there ? (R)Load(rstds, row) : R(0);
    }
    RowSums sums[$ahead];
#pragma unroll
    for (int u = 0; u < $ahead; ++u) {
      R sum = 0, dot = 0;
      $each_group {
        const Pack<$T, $pack> p = own_x[u].at(j, g);
        const Pack<$D, $pack> d = own_dy[u].at(j, g);
        $load
#pragma unroll
        for (int k = 0; k < $pack; ++k) {
          const R n = ((R)Load(p.at, k) - means_of[u]) * rstds_of[u];
          const R slope = (R)Load(d.at, k), dn = slope$scaled;
          sum += dn;
          dot += dn * n;
          $add
        }
      }
      sums[u].sum = $sum;
      sums[u].dot = WarpSum(dot);
    }
    $join_warps
#pragma unroll
    for (int u = 0; u < $ahead; ++u) {
      const i64 row = first + u * $side + own;
      if (row >= $rows) continue;
      const R sum = sums[u].sum / $count, dot = sums[u].dot / $count;
      $each_group {
        const Pack<$T, $pack> p = own_x[u].at(j, g);
        const Pack<$D, $pack> d = own_dy[u].at(j, g);
        $load
        Pack<$T, $pack> q;
#pragma unroll
        for (int k = 0; k < $pack; ++k) {
          const R n = ((R)Load(p.at, k) - means_of[u]) * rstds_of[u];
          const R dn = (R)Load(d.at, k)$scaled;
          Store(q.at, k, rstds_of[u] * (dn - sum - n * dot));
        }
        StorePack(dx + row * $extent, g, q);
      }
    }
  }
  $end
}
)cuda";

// The sums of a row's warps.  One barrier serves: the next rows' sums go to the other half.
constexpr std::string_view kJoinWarps = R"cuda(
    __shared__ RowSums scratch[2][$ahead * $side * $warps];
    RowSums* const of_warps = scratch[half];
    half ^= 1;
    if (lane % 32 == 0) {
#pragma unroll
      for (int u = 0; u < $ahead; ++u)
        of_warps[(u * $side + own) * $warps + lane / 32] = sums[u];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < $ahead; ++u) {
      sums[u].sum = sums[u].dot = 0;
#pragma unroll
      for (int w = 0; w < $warps; ++w) {
        const RowSums of_warp = of_warps[(u * $side + own) * $warps + w];
        sums[u].sum += of_warp.sum;
        sums[u].dot += of_warp.dot;
      }
    })cuda";

// What a thread has of dscale or dshift goes to the block's share; rows side by side join theirs.
constexpr std::string_view kPutSums = R"cuda(
RIDGE_FUNCTION void PutSums(const Pack<R, $pack> (&sums)[$each], int lane, R* share) {
  $each_group StorePack(share, g, sums[j]);
}
)cuda";
constexpr std::string_view kBlockPutSums = R"cuda(
RIDGE_FUNCTION void BlockPutSums(const Pack<R, $pack> (&sums)[$each], int own, int lane, R* share,
                                 Pack<R, $pack>* joined) {
  $each_group joined[own * $groups + g] = sums[j];
  __syncthreads();
  const R* const terms = joined->at;
  for (int i = threadIdx.x; i < $extent; i += $block) {
    R sum = terms[i];
#pragma unroll
    for (int s = 1; s < $side; ++s) sum += terms[s * $extent + i];
    share[i] = sum;
  }
  __syncthreads();
}
)cuda";

// Where a block's share is added up: for dscale and dshift, $which, at $at of the share.
struct GradShare {
  const char *begin, *add, *end;
};
constexpr GradShare kInRegisters = {"Pack<R, $pack> $which[$each] = {};\n  ",
                                    "$which[j].at[k] += $term;\n          ",
                                    "PutSums($which, lane, share + $at);\n  "};
constexpr const char* kEndSideBySide = "BlockPutSums($which, own, lane, share + $at, joined);\n  ";
constexpr GradShare kInWorkspace = {
    "for ($Index i = threadIdx.x; i < $extent; i += $threads) share[$at + i] = 0;\n  "
    "__syncthreads();\n  ",
    "share[$at + g * $pack + k] += $term;\n          ", ""};

struct NormGradShape {
  int64_t rows = 1, extent = 1;
  int64_t pack = 1;      // elements that a thread moves at once
  int64_t threads = 32;  // of a row: a power of two
  int64_t each = 1;      // packs of a thread
  int64_t side = 1;      // rows that a block takes side by side
  int64_t ahead = 1;     // and one after the other, before their sums are known
  bool keeps = true;     // a thread's packs and sums stay in registers

  int64_t groups() const { return extent / pack; }
  int64_t block() const { return threads * side; }
  int64_t rows_at_once() const { return side * ahead; }
  // That a multiprocessor is to hold, for 128 registers a thread.
  int64_t resident() const { return 2 * kBlockThreads / block(); }
  int64_t Blocks(int64_t most) const {
    return std::clamp<int64_t>(CeilDiv(rows, rows_at_once()), 1, most * kBlockThreads / block());
  }
  TextValues Values() const;
};

TextValues NormGradShape::Values() const {
  const char* index = IndexType(extent);
  const std::string each_group = fmt::format(
      "\n#pragma unroll{}\n    for ({} j = 0, g = lane; j < {}; ++j, g += {})\n      if (g < {})",
      keeps ? "" : " 2", index, each, threads, groups());
  return {{"rows", std::to_string(rows)},
          {"extent", fmt::format("{}ll", extent)},
          {"count", fmt::format("R({}.0)", std::max<int64_t>(extent, 1))},
          {"pack", std::to_string(pack)},
          {"threads", std::to_string(threads)},
          {"warps", std::to_string(threads / kWarpThreads)},
          {"block", std::to_string(block())},
          {"resident", std::to_string(resident())},
          {"each", std::to_string(std::max<int64_t>(each, 1))},
          {"groups", std::to_string(groups())},
          {"side", std::to_string(side)},
          {"ahead", std::to_string(ahead)},
          {"rows_at_once", std::to_string(rows_at_once())},
          {"Index", index},
          {"each_group", each_group}};
}

// `x_bytes`, `dy_bytes` and `sum_bytes` are those of an element.
NormGradShape ShapeOfNormGrad(const AxisView& view, int64_t x_bytes, int64_t dy_bytes,
                              int64_t sum_bytes) {
  NormGradShape shape{.rows = view.outer, .extent = view.extent};
  shape.pack = std::max<int64_t>(kPackBytes / std::max(x_bytes, dy_bytes), 1);
  while (view.extent % shape.pack != 0) shape.pack /= 2;
  const int64_t most_kept = kKeptBytes / sum_bytes;
  while (shape.threads * most_kept < view.extent && shape.threads < kMostRowThreads)
    shape.threads *= 2;
  shape.each = std::max<int64_t>(CeilDiv(shape.groups(), shape.threads), 1);
  shape.keeps = shape.each * shape.pack <= most_kept;
  shape.side = std::max<int64_t>(kBlockThreads / shape.threads, 1);
  const int64_t bytes = shape.each * shape.pack * (x_bytes + dy_bytes);
  const int64_t rows = shape.rows / (shape.side * kShares);
  if (shape.keeps)
    shape.ahead = std::clamp<int64_t>(std::min(kBytesAhead / bytes, rows), 1, kMostAhead);
  return shape;
}

// The operands of either operator.
struct NormGradCall {
  bool centred, scaled;
  size_t mean = 1, rstd, dy, scale;

  NormGradCall(const OpDef& op, const OpCall& call) : centred(op.name == "layer_norm_grad") {
    rstd = centred ? 2 : 1;
    dy = rstd + 1;
    scale = rstd + 2;
    scaled = call.has_input(scale);
  }
  int outputs_of_row() const { return centred ? 2 : 1; }
};

// The parts of the text that deal with dscale and dshift.
TextValues ShareValues(const NormGradCall& grad, const OpCall& call, const NormGradShape& shape) {
  if (!grad.scaled) return {{"begin", ""}, {"load", ""}, {"scaled", ""}, {"add", ""}, {"end", ""}};
  const GradShare& share = shape.keeps ? kInRegisters : kInWorkspace;
  const auto both = [&](const char* part) {
    TextValues dscale = shape.Values(), dshift = dscale;
    dscale.insert(dscale.end(), {{"which", "dscale"}, {"at", "0"}, {"term", "slope * n"}});
    dshift.insert(dshift.end(),
                  {{"which", "dshift"}, {"at", std::to_string(shape.extent)}, {"term", "slope"}});
    return FillText(part, dscale) + (grad.centred ? FillText(part, dshift) : "");
  };
  std::string start = fmt::format("R* const share = shares + blockIdx.x * {}ll;\n  ",
                                  shape.extent * grad.outputs_of_row());
  const bool side_by_side = shape.keeps && shape.side > 1;
  if (side_by_side)
    start += FillText("__shared__ Pack<R, $pack> joined[$side * $groups];\n  ", shape.Values());
  const std::string load = fmt::format("const Pack<{}, $pack> scales = LoadPack<$pack>(scale, g);",
                                       StorageType(call.inputs[grad.scale].dtype));
  return {{"begin", start + both(share.begin)},
          {"load", FillText(load, shape.Values())},
          {"scaled", " * (R)Load(scales.at, k)"},
          {"add", both(share.add)},
          {"end", both(side_by_side ? kEndSideBySide : share.end)}};
}

struct GradParameters {
  std::string text;
  std::vector<Argument> arguments;

  void Add(const std::string& declaration, Argument argument) {
    text += (text.empty() ? "" : ", ") + declaration;
    arguments.push_back(argument);
  }
  void AddInput(const OpCall& call, size_t i, const char* name) {
    Add(fmt::format("const {}* {}", StorageType(call.inputs[i].dtype), name),
        Argument::Input(static_cast<int>(i)));
  }
};

GradParameters ParametersOf(const NormGradCall& grad, const OpCall& call) {
  GradParameters parameters;
  parameters.AddInput(call, 0, "x");
  if (grad.centred) parameters.AddInput(call, grad.mean, "means");
  parameters.AddInput(call, grad.rstd, "rstds");
  parameters.AddInput(call, grad.dy, "dy");
  parameters.Add(fmt::format("{}* dx", StorageType(call.outputs[0].dtype)), Argument::Output(0));
  if (grad.scaled) {
    parameters.AddInput(call, grad.scale, "scale");
    parameters.Add("R* shares", Argument::Workspace());
  }
  return parameters;
}

void AddJoin(const NormGradCall& grad, const OpCall& call, int64_t extent, int64_t shares,
             KernelText& text) {
  const ReduceTile tile = TileOfParts(extent * grad.outputs_of_row(), shares);
  const char* stored = StorageType(call.outputs[1].dtype);
  std::string parameters = fmt::format("{}* dscale", stored), write = "Store(dscale, o, sum);";
  std::vector<Argument> arguments = {Argument::Workspace(), Argument::Output(1)};
  if (grad.centred) {
    parameters += fmt::format(", {}* dshift", stored);
    write = fmt::format("if (o < {0}) Store(dscale, o, sum); else Store(dshift, o - {0}, sum);",
                        extent);
    arguments.push_back(Argument::Output(2));
  }
  text.source += std::string(ReduceTileText()) + JoinSumsText(tile, parameters, write);
  text.launches.push_back({"join_sums", tile.Blocks(), kBlockThreads, arguments});
}

// The types and functions in front of the kernel.
std::string NormGradParts(const NormGradCall& grad, const NormGradShape& shape) {
  std::string parts = FillText(shape.keeps ? kKeptRow : kReadRow, shape.Values());
  if (grad.scaled && shape.keeps)
    parts += FillText(shape.side > 1 ? kBlockPutSums : kPutSums, shape.Values());
  return parts;
}

const char* WriteNormGrad(const OpDef& op, const OpCall& call, KernelText& text) {
  const NormGradCall grad(op, call);
  const TensorType &x = call.inputs[0], &dy = call.inputs[grad.dy];
  const std::string compute = ComputeTypeOf(call);
  const int64_t sum_bytes = compute == "double" ? 8 : 4;
  const NormGradShape shape =
      ShapeOfNormGrad(ViewTrailing(x.dims, CallAxis(call)), BytesPerElement(x.dtype),
                      BytesPerElement(dy.dtype), sum_bytes);
  const GradParameters parameters = ParametersOf(grad, call);
  const int64_t blocks = shape.Blocks(grad.scaled ? kShares : kMostBlocks);
  const bool warps = shape.threads > kWarpThreads;
  TextValues values = shape.Values();
  values.insert(values.end(), {{"name", op.name},
                               {"parameters", parameters.text},
                               {"T", StorageType(x.dtype)},
                               {"D", StorageType(dy.dtype)},
                               {"mean", grad.centred ? "(R)Load(means, row)" : "R(0)"},
                               {"sum", grad.centred ? "WarpSum(sum)" : "0"},
                               {"half", warps ? "int half = 0;" : ""},
                               {"join_warps", warps ? FillText(kJoinWarps, shape.Values()) : ""}});
  for (auto& value : ShareValues(grad, call, shape)) values.push_back(std::move(value));
  text.source = fmt::format("typedef {} R;\n", compute) + NormGradParts(grad, shape) +
                FillText(kNormGradText, values);
  text.launches = {{op.name, blocks, static_cast<int>(shape.block()), parameters.arguments}};
  if (!grad.scaled) return nullptr;
  text.workspace_bytes = RoundUp(blocks * shape.extent * grad.outputs_of_row() * sum_bytes, 256);
  AddJoin(grad, call, shape.extent, blocks, text);
  return nullptr;
}

}  // namespace

TextKernelDef NormGradTextKernel() {
  return {.name = "cuda.norm_grad",
          .ops = {"layer_norm_grad", "rms_norm_grad"},
          .write = WriteNormGrad};
}

}  // namespace ridge::cuda
