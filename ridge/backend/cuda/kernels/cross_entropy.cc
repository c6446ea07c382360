// softmax_cross_entropy and its gradient: a block a row, read once for the largest logit and the
// sum of exponentials, which each thread keeps together, and by the gradient once more.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/row_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kLogitsKept = 32;
// The gradient reads a row twice.  Of long ones as many are under way as a cache of 50 MB holds,
// each by many threads, so that the second time comes from there.
constexpr int64_t kLongRowBytes = 64 << 10, kLongRows = 132;
constexpr int kLongRowThreads = 1024;

constexpr std::string_view kCrossEntropyText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  __shared__ R scratch[32];
  for (i64 row = blockIdx.x; row < $rows; row += gridDim.x) {
    const i64 first = row * $extent, label = labels[row];
    const bool ignored = label == $ignore_index, valid = label >= 0 && label < $extent;
    const R filler = ignored ? R(0) : NotANumber<R>();
    $body
  }
}
)cuda";

constexpr std::string_view kLossText = R"cuda(
    R loss = filler;
    if (!ignored && valid) {
      const Row<$T> own(logits + first);
      loss = BlockLogSumExp<R>(own, scratch) - (R)Load(logits, first + label);
    }
    if (threadIdx.x == 0) Store(losses, row, loss);)cuda";

constexpr std::string_view kLossGradText = R"cuda(
    const Row<$T> own(logits + first);
    R log_sum = 0;
    if (!ignored && valid) log_sum = BlockLogSumExp<R>(own, scratch);
    const R dloss = (R)Load(dlosses, row);
    $each_group {
      const Pack<R, $pack> p = own.at(j, g);
      Pack<$U, $pack> q;
#pragma unroll
      for (int k = 0; k < $pack; ++k) {
        const R hit = (i64)g * $pack + k == label ? R(1) : R(0);
        const R slope = (exp(p.at[k] - log_sum) - hit) * dloss;
        Store(q.at, k, !ignored && valid ? slope : filler);
      }
      StorePack(dlogits + first, g, q);
    })cuda";

const char* WriteCrossEntropy(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType &logits = call.inputs[0], &labels = call.inputs[1];
  const bool gradient = op.name == "softmax_cross_entropy_grad";
  const int64_t narrowest =
      gradient ? std::min(BytesPerElement(logits.dtype), BytesPerElement(call.outputs[0].dtype))
               : BytesPerElement(logits.dtype);
  RowShape shape = ShapeOfRows(labels.elements(), logits.dims.back(), narrowest, kLogitsKept);
  int64_t blocks = shape.Blocks();
  if (gradient && shape.extent * BytesPerElement(logits.dtype) >= kLongRowBytes) {
    shape.threads = kLongRowThreads;
    shape.each = CeilDiv(shape.groups(), shape.threads);
    blocks = std::min(shape.rows, kLongRows);
  }
  const char* out = StorageType(call.outputs[0].dtype);
  std::string parameters = fmt::format("const {}* logits, const {}* labels, ",
                                       StorageType(logits.dtype), StorageType(labels.dtype));
  std::vector<Argument> arguments = {Argument::Input(0), Argument::Input(1)};
  if (gradient) {
    parameters +=
        fmt::format("const {}* dlosses, {}* dlogits", StorageType(call.inputs[2].dtype), out);
    arguments.push_back(Argument::Input(2));
  } else {
    parameters += fmt::format("{}* losses", out);
  }
  arguments.push_back(Argument::Output(0));
  const DType computed =
      call.outputs[0].dtype == DType::kF64 ? DType::kF64 : logits.dtype;  // losses may be wider
  TextValues values = shape.Values();
  values.insert(values.end(),
                {{"name", op.name},
                 {"parameters", parameters},
                 {"T", StorageType(logits.dtype)},
                 {"U", out},
                 {"ignore_index",
                  fmt::format("(i64){}ull", static_cast<uint64_t>(call.integer("ignore_index")))}});
  values.emplace_back("body", FillText(gradient ? kLossGradText : kLossText, values));
  text.source = fmt::format("typedef {} R;\n", ComputeType(computed)) + RowText(shape) +
                LogSumExpText(shape, StorageType(logits.dtype)) +
                FillText(kCrossEntropyText, values);
  text.launches = {{op.name, blocks, shape.threads, arguments}};
  return nullptr;
}

}  // namespace

TextKernelDef CrossEntropyTextKernel() {
  return {.name = "cuda.cross_entropy",
          .ops = {"softmax_cross_entropy", "softmax_cross_entropy_grad"},
          .write = WriteCrossEntropy};
}

}  // namespace ridge::cuda
