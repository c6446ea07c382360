// softmax_cross_entropy and its gradient: a block a row, read once for the largest logit, its place
// and the sum of exponentials, which each thread keeps together.  A gradient that is given the
// log-sums reads a row once, else twice.  It may write over the logits: a thread writes what it has
// read itself, after all searched the row.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/row_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr size_t kLogSums = 3;  // input of the gradient
constexpr int64_t kLogitsKept = 32;
// A gradient without log-sums reads a row twice.  Of long ones as many are under way as a cache of
// 50 MB holds, each by many threads, so that the second time comes from there.
constexpr int64_t kLongRowBytes = 64 << 10, kLongRows = 132;
constexpr int kLongRowThreads = 1024;
// Blocks where rows are read once: each has few, so that none is left with many at the end.
constexpr int64_t kMostStreams = 8 * kMostBlocks;
// Of a gradient that reads once: bytes that a thread asks for at once, and blocks of a
// multiprocessor whose registers hold them.
constexpr int64_t kBytesAhead = 64;
constexpr int kResidentBlocks = 4;

constexpr std::string_view kCrossEntropyText = R"cuda(
RIDGE_KERNEL ${bounds}void $name($parameters) {
  __shared__ R scratch[32];
  for (i64 row = blockIdx.x; row < $rows; row += gridDim.x) {
    const i64 first = row * $extent, label = labels[row];
    const bool ignored = label == $ignore_index;
    const bool counted = !ignored && label >= 0 && label < $extent;
    const R filler = ignored ? R(0) : NotANumber<R>();
    $body
  }
}
)cuda";

constexpr std::string_view kLossText = R"cuda(
    R loss = filler;
    if ($searched) {
      const Row<$T> own(logits + first);
      i64 place;
      const R log_sum = BlockLogSumExp<R>(own, scratch, place);
      if (counted) loss = log_sum - (R)Load(logits, first + label);
      $extra
    }
    if (threadIdx.x == 0) Store(losses, row, loss);)cuda";
constexpr const char* kStoreLogSum = "if (threadIdx.x == 0) Store(log_sums, row, log_sum);\n";
constexpr const char* kStoreBest = R"cuda(
      __shared__ i64 places[32];
      place = BlockArgmax(place, places);
      if (threadIdx.x == 0) best[row] = place;)cuda";

// Writes the gradients of pack `g` of a row, whose logits are the numbers `p`.
constexpr std::string_view kSlopesText = R"cuda(
      const int label_here = (i64)g == label / $pack ? (int)(label % $pack) : -1;
      Pack<$U, $pack> q;
#pragma unroll
      for (int k = 0; k < $pack; ++k) {
        const R hit = k == label_here ? R(1) : R(0);
        const R slope = (exp((R)Load(p.at, k) - log_sum) - hit) * dloss;
        Store(q.at, k, counted ? slope : filler);
      }
      StorePack(dlogits + first, g, q);)cuda";

constexpr std::string_view kSearchedGradText = R"cuda(
    const Row<$T> own(logits + first);
    R log_sum = 0;
    i64 place;
    if (counted) log_sum = BlockLogSumExp<R>(own, scratch, place);
    const R dloss = (R)Load(dlosses, row);
    $each_group {
      const Pack<R, $pack> p = own.at(j, g);
      $slopes
    })cuda";

// A thread asks for $ahead packs before it writes the first.
constexpr std::string_view kGradText = R"cuda(
    const R log_sum = (R)Load(log_sums, row), dloss = (R)Load(dlosses, row);
    for ($Index begin = threadIdx.x; begin < $groups; begin += $threads * $ahead) {
      Pack<$T, $pack> ahead[$ahead];
#pragma unroll
      for (int j = 0; j < $ahead; ++j)
        if (begin + j * $threads < $groups)
          ahead[j] = LoadPack<$pack>(logits + first, begin + j * $threads);
#pragma unroll
      for (int j = 0; j < $ahead; ++j) {
        const $Index g = begin + j * $threads;
        if (g >= $groups) break;
        const Pack<$T, $pack> p = ahead[j];
        $slopes
      }
    })cuda";

// The parameters of a kernel, and what a launch passes for them.
struct Operands {
  std::string parameters;
  std::vector<Argument> arguments;

  void Add(const std::string& parameter, Argument argument) {
    parameters += (parameters.empty() ? "" : ", ") + parameter;
    arguments.push_back(argument);
  }
};

Operands OperandsOf(const OpDef& op, const OpCall& call) {
  Operands operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.has_input(i)) continue;
    std::string name = op.input_names[i];
    if (name.ends_with('?')) name.pop_back();
    operands.Add(fmt::format("const {}* {}", StorageType(call.inputs[i].dtype), name),
                 Argument::Input(static_cast<int>(i)));
  }
  for (size_t o = 0; o < call.outputs.size(); ++o)
    operands.Add(fmt::format("{}* {}", StorageType(call.outputs[o].dtype), op.output_names[o]),
                 Argument::Output(static_cast<int>(o)));
  return operands;
}

// `body` of a block, which takes a row at a time.
void WriteRows(const OpDef& op, const OpCall& call, const RowShape& shape, int64_t blocks,
               std::string_view body, TextValues values, KernelText& text) {
  const TensorType& logits = call.inputs[0];
  const Operands operands = OperandsOf(op, call);
  const DType computed =
      call.outputs[0].dtype == DType::kF64 ? DType::kF64 : logits.dtype;  // losses may be wider
  for (auto& value : shape.Values()) values.push_back(std::move(value));
  values.insert(values.end(),
                {{"name", op.name},
                 {"parameters", operands.parameters},
                 {"T", StorageType(logits.dtype)},
                 {"U", StorageType(call.outputs[0].dtype)},
                 {"Index", IndexType(2 * shape.extent)},
                 {"ignore_index",
                  fmt::format("(i64){}ull", static_cast<uint64_t>(call.integer("ignore_index")))}});
  values.emplace_back("slopes", FillText(kSlopesText, values));
  values.emplace_back("body", FillText(body, values));
  text.source = fmt::format("typedef {} R;\n", ComputeType(computed)) + RowText(shape) +
                LogSumExpText(shape, StorageType(logits.dtype)) +
                FillText(kCrossEntropyText, values);
  text.launches = {{op.name, blocks, shape.threads, operands.arguments}};
}

std::string Bounds(const RowShape& shape, int resident) {
  return fmt::format("__launch_bounds__({}, {}) ", shape.threads, resident);
}

const char* WriteLoss(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& logits = call.inputs[0];
  const RowShape shape = ShapeOfRows(call.inputs[1].elements(), logits.dims.back(),
                                     BytesPerElement(logits.dtype), kLogitsKept);
  const int64_t extra = call.integer("extra_outputs");
  const std::string stores =
      std::string(extra >= 1 ? kStoreLogSum : "") + (extra >= 2 ? kStoreBest : "");
  const int64_t blocks = shape.keeps ? shape.Blocks() : shape.Blocks(kMostStreams);
  WriteRows(op, call, shape, blocks, kLossText,
            {{"bounds", ""}, {"searched", extra > 0 ? "true" : "counted"}, {"extra", stores}},
            text);
  return nullptr;
}

const char* WriteLossGrad(const OpDef& op, const OpCall& call, KernelText& text) {
  const int64_t logit_bytes = BytesPerElement(call.inputs[0].dtype);
  RowShape shape =
      ShapeOfRows(call.inputs[1].elements(), call.inputs[0].dims.back(),
                  std::min(logit_bytes, BytesPerElement(call.outputs[0].dtype)), kLogitsKept);
  if (call.has_input(kLogSums)) {
    const int64_t most = std::max<int64_t>(kBytesAhead / (shape.pack * logit_bytes), 1);
    const int64_t ahead = std::clamp<int64_t>(shape.each, 1, most);
    WriteRows(op, call, shape, shape.Blocks(kMostStreams), kGradText,
              {{"bounds", Bounds(shape, kResidentBlocks)}, {"ahead", std::to_string(ahead)}}, text);
    return nullptr;
  }
  int64_t blocks = shape.Blocks();
  if (shape.extent * logit_bytes >= kLongRowBytes) {
    shape.threads = kLongRowThreads;
    shape.each = CeilDiv(shape.groups(), shape.threads);
    blocks = std::min(shape.rows, kLongRows);
  }
  WriteRows(op, call, shape, blocks, kSearchedGradText, {{"bounds", ""}}, text);
  return nullptr;
}

const char* WriteCrossEntropy(const OpDef& op, const OpCall& call, KernelText& text) {
  const bool gradient = op.name == "softmax_cross_entropy_grad";
  return gradient ? WriteLossGrad(op, call, text) : WriteLoss(op, call, text);
}

}  // namespace

TextKernelDef CrossEntropyTextKernel() {
  return {.name = "cuda.cross_entropy",
          .ops = {"softmax_cross_entropy", "softmax_cross_entropy_grad"},
          .write = WriteCrossEntropy};
}

}  // namespace ridge::cuda
