// matmul: a product a matrix of the batch; one b under a batch is one product of all rows.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr size_t kBias = 2;

Dims BatchDims(const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); }

// Where a matrix of the batch begins in an operand.
std::string MatrixText(const Dims& operand, const Dims& batch) {
  Dims strides = BroadcastStrides(BatchDims(operand), batch);
  const int64_t elements = operand[operand.size() - 2] * operand[operand.size() - 1];
  for (int64_t& stride : strides) stride *= elements;
  return OffsetText(batch, strides, "batch");
}

// Whether all rows of a, over the whole batch, meet one b.
bool SharesB(const OpCall& call) {
  const Dims batch = BatchDims(call.outputs[0].dims);
  return call.integer("transpose_a") == 0 && BatchDims(call.inputs[0].dims) == batch &&
         ElementCount(BatchDims(call.inputs[1].dims)) == 1;
}

const char* WriteMatmul(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const Dims &a = call.inputs[0].dims, &b = call.inputs[1].dims, &y = call.outputs[0].dims;
  const bool ta = call.integer("transpose_a") != 0, tb = call.integer("transpose_b") != 0;
  ProductText p{.compute = SumType(call)};
  Dims batch = BatchDims(y);
  p.rows = y[y.size() - 2];
  p.columns = y.back();
  p.depth = ta ? a[a.size() - 2] : a.back();
  p.batch = ElementCount(batch);
  p.largest_index =
      std::max({call.inputs[0].elements(), call.inputs[1].elements(), call.outputs[0].elements()});
  std::string a_begin = MatrixText(a, batch), b_begin = MatrixText(b, batch);
  if (SharesB(call)) {
    p.rows *= p.batch;
    p.batch = 1;
    a_begin = b_begin = "0";
  }
  p.a = fmt::format(
      "return (R)Load(a_data, ({}) + {});", a_begin,
      ta ? fmt::format("k * (Index){} + m", p.rows) : fmt::format("m * (Index){} + k", p.depth));
  p.b = fmt::format(
      "return (R)Load(b_data, ({}) + {});", b_begin,
      tb ? fmt::format("n * (Index){} + k", p.depth) : fmt::format("k * (Index){} + n", p.columns));
  p.a_along_depth = !ta;
  p.b_along_depth = tb;
  p.operands.AddInput(call, 0, "a_data");
  p.operands.AddInput(call, 1, "b_data");
  const std::string at = fmt::format("(batch * (Index){} + m) * (Index){} + n", p.rows, p.columns);
  if (const char* reason = AddFinish(call, kBias, "n", at, p); reason != nullptr) return reason;
  return WriteProduct(p, text);
}

}  // namespace

TextKernelDef MatmulTextKernel() {
  return {.name = "cuda.matmul", .ops = {"matmul"}, .write = WriteMatmul};
}

}  // namespace ridge::cuda
