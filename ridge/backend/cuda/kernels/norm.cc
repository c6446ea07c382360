// layer_norm and rms_norm: a block a row, whose elements stay in registers where it is short
// enough; the variance is the mean of the squared distances from the mean.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/row_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kNormKept = 32;

constexpr std::string_view kNormText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  __shared__ R scratch[32];
  for (i64 row = blockIdx.x; row < $rows; row += gridDim.x) {
    const i64 first = row * $extent;
    const Row<$T> own(x + first);
    $mean
    R squares = 0;
    $each_group {
      const Pack<R, $pack> p = own.at(j, g);
#pragma unroll
      for (int k = 0; k < $pack; ++k) squares += (p.at[k] - mean) * (p.at[k] - mean);
    }
    const R rstd = R(1) / sqrt(BlockSum(squares, scratch) / $count + $epsilon);
    $each_group {
      const Pack<R, $pack> p = own.at(j, g);
      $load
      Pack<$U, $pack> q;
#pragma unroll
      for (int k = 0; k < $pack; ++k) Store(q.at, k, (p.at[k] - mean) * rstd$apply);
      StorePack(y + first, g, q);
    }
    if (threadIdx.x == 0) {
      $store
    }
  }
}
)cuda";

constexpr std::string_view kMeanText = R"cuda(
    R sum = 0;
    $each_group {
      const Pack<R, $pack> p = own.at(j, g);
#pragma unroll
      for (int k = 0; k < $pack; ++k) sum += p.at[k];
    }
    const R mean = BlockSum(sum, scratch) / $count;)cuda";

// What the inputs behind x and the outputs add to the text.
struct NormOperands {
  std::string parameters = {}, load = {}, apply = {}, store = {};
  std::vector<Argument> arguments = {};

  void AddInput(const OpCall& call, int i, const char* name, const char* apply_text) {
    if (!call.has_input(static_cast<size_t>(i))) return;
    const char* stored = StorageType(call.inputs[static_cast<size_t>(i)].dtype);
    parameters += fmt::format(", const {}* {}", stored, name);
    load += fmt::format("const Pack<R, $pack> {0}s = LoadNumbers({0}, g);\n      ", name);
    apply += fmt::format(" {} {}s.at[k]", apply_text, name);
    arguments.push_back(Argument::Input(i));
  }
  void AddStatistic(const OpCall& call, int o, const char* name) {
    const char* stored = StorageType(call.outputs[static_cast<size_t>(o)].dtype);
    parameters += fmt::format(", {}* {}_out", stored, name);
    store += fmt::format("Store({0}_out, row, {0});\n      ", name);
    arguments.push_back(Argument::Output(o));
  }
};

const char* WriteNorm(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const bool centred = op.name == "layer_norm";
  const AxisView view = ViewTrailing(x.dims, CallAxis(call));
  const RowShape shape = ShapeOfRows(view.outer, view.extent, BytesPerElement(x.dtype), kNormKept);
  NormOperands operands{
      .parameters = fmt::format("const {}* x, {}* y", StorageType(x.dtype), StorageType(y.dtype)),
      .arguments = {Argument::Input(0), Argument::Output(0)}};
  operands.AddInput(call, 1, "scale", "*");
  operands.AddInput(call, 2, "shift", "+");
  if (centred) operands.AddStatistic(call, 1, "mean");
  operands.AddStatistic(call, centred ? 2 : 1, "rstd");
  TextValues values = shape.Values();
  const std::string mean = centred ? FillText(kMeanText, values) : "const R mean = 0;";
  const std::string load = FillText(operands.load, values);
  values.insert(values.end(), {{"name", op.name},
                               {"parameters", operands.parameters},
                               {"T", StorageType(x.dtype)},
                               {"U", StorageType(y.dtype)},
                               {"mean", mean},
                               {"epsilon", Literal(call.number("epsilon"))},
                               {"load", load},
                               {"apply", operands.apply},
                               {"store", operands.store}});
  text.source = fmt::format("typedef {} R;\n", ComputeTypeOf(call)) + RowText(shape) +
                FillText(kNormText, values);
  text.launches = {{op.name, shape.Blocks(), shape.threads, operands.arguments}};
  return nullptr;
}

}  // namespace

TextKernelDef NormTextKernel() {
  return {.name = "cuda.norm", .ops = {"layer_norm", "rms_norm"}, .write = WriteNorm};
}

}  // namespace ridge::cuda
