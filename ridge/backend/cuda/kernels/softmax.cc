// softmax and log_softmax: a block a row, which it reads three times.
#include <fmt/format.h>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kSoftmaxText = R"cuda(
typedef $R R;
// x, y: [outer, extent, inner]; a row lies along extent.
RIDGE_KERNEL void softmax(const $T* x, $T* y) {
  __shared__ R scratch[32];
  for (i64 row = blockIdx.x; row < $rows; row += gridDim.x) {
    const i64 first = row / $inner * ($extent * $inner) + row % $inner;
    R largest = -Infinity<R>();
    for (i64 k = threadIdx.x; k < $extent; k += blockDim.x)
      largest = Larger(largest, (R)Load(x, first + k * $inner));
    largest = BlockMax(largest, scratch);
    R sum = 0;
    for (i64 k = threadIdx.x; k < $extent; k += blockDim.x)
      sum += exp((R)Load(x, first + k * $inner) - largest);
    sum = BlockSum(sum, scratch);
    for (i64 k = threadIdx.x; k < $extent; k += blockDim.x) {
      const i64 at = first + k * $inner;
      const R shifted = (R)Load(x, at) - largest;
      Store(y, at, $value);
    }
  }
}
)cuda";

const char* WriteSoftmax(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const AxisView view = ViewAxis(x.dims, CallAxis(call));
  const int64_t rows = view.outer * view.inner;
  text.source =
      FillText(kSoftmaxText,
               {{"R", ComputeType(x.dtype)},
                {"T", StorageType(x.dtype)},
                {"rows", std::to_string(rows)},
                {"extent", fmt::format("{}ll", view.extent)},
                {"inner", fmt::format("{}ll", view.inner)},
                {"value", op.name == "softmax" ? "exp(shifted) / sum" : "shifted - log(sum)"}});
  text.launches = {{"softmax",
                    BlocksForRows(rows),
                    ThreadsForRow(view.extent),
                    {Argument::Input(0), Argument::Output(0)}}};
  return nullptr;
}

}  // namespace

TextKernelDef SoftmaxTextKernel() {
  return {.name = "cuda.softmax", .ops = {"softmax", "log_softmax"}, .write = WriteSoftmax};
}

}  // namespace ridge::cuda
