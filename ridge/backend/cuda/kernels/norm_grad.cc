// layer_norm_grad and rms_norm_grad: a block takes rows in turn and adds up its share of dscale and
// dshift on the way, in registers where a row is short enough, else in workspace; a second pass
// joins the shares.  A row whose elements one warp can keep is a warp's; the warps of a block join
// their sums first.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/row_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kNormGradKept = 32;
constexpr int64_t kShares = 528;         // blocks, which write a share each
constexpr int64_t kSharesOfWarps = 264;  // where they take as many rows at a time as
constexpr int kWarps = 8;                // they have warps

constexpr std::string_view kNormGradText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  __shared__ R scratch[32];
  $begin
  for (i64 row = $first_row; row < $rows; row += (i64)gridDim.x * $warps) {
    const i64 first = row * $extent;
    const Row<$T> own(x + first);
    const Row<$D> own_dy(dy + first);
    const R mean = $mean, rstd = (R)Load(rstds, row);
    R sum = 0, dot = 0;
    $each_group {
      const Pack<R, $pack> p = own.at(j, g), d = own_dy.at(j, g);
      $load
#pragma unroll
      for (int k = 0; k < $pack; ++k) {
        const R n = (p.at[k] - mean) * rstd, dn = d.at[k]$scaled;
        sum += dn;
        dot += dn * n;
        $add
      }
    }
    $join_sum
    dot = $dot / $count;
    $each_group {
      const Pack<R, $pack> p = own.at(j, g), d = own_dy.at(j, g);
      $load
      Pack<$T, $pack> q;
#pragma unroll
      for (int k = 0; k < $pack; ++k) {
        const R n = (p.at[k] - mean) * rstd, dn = d.at[k]$scaled;
        Store(q.at, k, rstd * (dn - sum - n * dot));
      }
      StorePack(dx + first, g, q);
    }
  }
  $end
}
)cuda";

// Where a block's share lies while it is added up.
struct GradShare {
  const char *begin, *add_scale, *add_shift, *end_scale, *end_shift;
};
constexpr GradShare kInRegisters = {
    R"cuda(R dscale[$each * $pack], dshift[$each * $pack];
#pragma unroll
  for (int i = 0; i < $each * $pack; ++i) dscale[i] = dshift[i] = 0;)cuda",
    "dscale[j * $pack + k] += d.at[k] * n;", "dshift[j * $pack + k] += d.at[k];",
    "share[g * $pack + k] = dscale[j * $pack + k];",
    "share[$extent + g * $pack + k] = dshift[j * $pack + k];"};
constexpr GradShare kInWorkspace = {
    "for (i64 i = threadIdx.x; i < $groups; i += $threads)\n"
    "    for (int k = 0; k < $pack; ++k) {\n      $zero\n    }",
    "share[g * $pack + k] += d.at[k] * n;", "share[$extent + g * $pack + k] += d.at[k];", "", ""};

constexpr const char* kShareStart =
    "R* const share = shares + blockIdx.x * ($extent * $outputs_of_row);\n  ";
// Each warp adds what it has to the sums of those before it.
constexpr std::string_view kJoinWarps = R"cuda(
  __shared__ R joined[$extent * $outputs_of_row];
  for (int w = 0; w < $warps; ++w) {
    if ((int)threadIdx.x / 32 == w) {
      $each_group {
#pragma unroll
        for (int k = 0; k < $pack; ++k) {
          $add_scale$add_shift
        }
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < $extent * $outputs_of_row; i += blockDim.x) share[i] = joined[i];)cuda";
constexpr const char* kAddScale =
    "joined[g * $pack + k] = (w == 0 ? R(0) : joined[g * $pack + k]) + dscale[j * $pack + k];";
constexpr const char* kAddShift =
    "\n          joined[$extent + g * $pack + k] = "
    "(w == 0 ? R(0) : joined[$extent + g * $pack + k]) + dshift[j * $pack + k];";
constexpr const char* kEachElement =
    "$each_group {\n#pragma unroll\n      for (int k = 0; k < $pack; ++k) {\n        ";

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
TextValues ShareValues(const NormGradCall& grad, const RowShape& shape) {
  if (!grad.scaled) return {{"begin", ""}, {"load", ""}, {"scaled", ""}, {"add", ""}, {"end", ""}};
  const GradShare& share = shape.keeps ? kInRegisters : kInWorkspace;
  TextValues values = shape.Values();
  values.emplace_back("outputs_of_row", std::to_string(grad.outputs_of_row()));
  values.emplace_back(
      "zero", grad.centred
                  ? FillText("share[i * $pack + k] = share[$extent + i * $pack + k] = 0;", values)
                  : FillText("share[i * $pack + k] = 0;", values));
  const auto fill = [&](const std::string& part) { return FillText(part, values); };
  const auto both = [&](const char* scale, const char* shift) {
    return fill(std::string(scale) + (grad.centred ? "\n        " + std::string(shift) : ""));
  };
  values.emplace_back("add_scale", fill(kAddScale));
  values.emplace_back("add_shift", grad.centred ? fill(kAddShift) : "");
  std::string end;
  if (shape.warps > 1) {
    end = fill(std::string(kJoinWarps));
  } else if (shape.keeps) {
    end = fill(kEachElement) + both(share.end_scale, share.end_shift) + "\n      }\n  }";
  }
  return {{"begin", fill(std::string(kShareStart) + share.begin)},
          {"load", fill("const Pack<R, $pack> scales = LoadNumbers(scale, g);")},
          {"scaled", " * scales.at[k]"},
          {"add", both(share.add_scale, share.add_shift)},
          {"end", end}};
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

const char* WriteNormGrad(const OpDef& op, const OpCall& call, KernelText& text) {
  const NormGradCall grad(op, call);
  const TensorType &x = call.inputs[0], &dy = call.inputs[grad.dy];
  const AxisView view = ViewTrailing(x.dims, CallAxis(call));
  const int64_t narrowest = std::min(BytesPerElement(x.dtype), BytesPerElement(dy.dtype));
  RowShape shape = ShapeOfRows(view.outer, view.extent, narrowest, kNormGradKept);
  const bool by_warps = shape.threads == kWarpThreads && shape.rows > kWarps;
  if (by_warps) shape.warps = kWarps;
  const GradParameters parameters = ParametersOf(grad, call);
  const int64_t most = !grad.scaled ? kMostBlocks : by_warps ? kSharesOfWarps : kShares;
  const int64_t blocks = std::clamp<int64_t>(CeilDiv(shape.rows, shape.warps), 1, most);
  const auto sum_over_row = [by_warps](const std::string& x) {
    return by_warps ? "BlockSumOfWarp(" + x + ")" : "BlockSum(" + x + ", scratch)";
  };
  TextValues values = shape.Values();
  values.insert(
      values.end(),
      {{"name", op.name},
       {"parameters", parameters.text},
       {"T", StorageType(x.dtype)},
       {"D", StorageType(dy.dtype)},
       {"mean", grad.centred ? "(R)Load(means, row)" : "0"},
       {"first_row",
        by_warps ? FillText("(i64)blockIdx.x * $warps + threadIdx.x / 32", values) : "blockIdx.x"},
       {"dot", sum_over_row("dot")},
       {"join_sum", grad.centred ? FillText("sum = " + sum_over_row("sum") + " / $count;", values)
                                 : "sum = 0;"}});
  for (auto& value : ShareValues(grad, shape)) values.push_back(std::move(value));
  const std::string compute = ComputeTypeOf(call);
  text.source =
      fmt::format("typedef {} R;\n", compute) + RowText(shape) + FillText(kNormGradText, values);
  text.launches = {{op.name, blocks, shape.threads * shape.warps, parameters.arguments}};
  if (!grad.scaled) return nullptr;
  const int64_t bytes = compute == "double" ? 8 : 4;
  text.workspace_bytes = RoundUp(blocks * shape.extent * grad.outputs_of_row() * bytes, 256);
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
