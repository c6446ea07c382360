#include "ridge/backend/cuda/cublaslt/product.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/core/shape.h"

namespace ridge::cuda {
namespace {

constexpr size_t kBiasInput = 2, kAddedInput = 3;
constexpr int64_t kMostBatch = std::numeric_limits<int32_t>::max();

std::optional<LtType> LtTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return LtType::kF32;
    case DType::kF64:
      return LtType::kF64;
    case DType::kF16:
      return LtType::kF16;
    case DType::kBF16:
      return LtType::kBF16;
    default:
      return std::nullopt;
  }
}

int64_t BytesOf(LtType type) {
  if (type == LtType::kF64) return 8;
  return type == LtType::kF32 ? 4 : 2;
}

// Those that NVIDIA lists: sums of 16 bits and their results in f32 or rounded.
bool Multiplies(DType in, DType out) {
  return in == out || (out == DType::kF32 && Is16BitFloat(in));
}

Dims Leading(const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); }

// Matrices from one of `batch` to the next, where that is one number.
std::optional<int64_t> MatrixStride(const Dims& operand, const Dims& batch) {
  const Dims strides = BroadcastStrides(operand, batch);
  std::optional<int64_t> stride;
  int64_t inside = 1;  // matrices of one step along the dimension
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] == 1) continue;
    if (!stride) stride = strides[d];
    if (strides[d] != *stride * inside) return std::nullopt;
    inside *= batch[d];
  }
  return stride.value_or(0);
}

ProductMatrix MatrixOf(const TensorType& type) {
  return {.type = *LtTypeOf(type.dtype),
          .rows = type.dims[type.dims.size() - 2],
          .columns = type.dims.back()};
}

// A batch of a's that meet one b is one a of all rows.
const char* SetBatch(const OpCall& call, Product& product) {
  const Dims batch = Leading(call.outputs[0].dims);
  const int64_t count = ElementCount(batch);
  if (count == 1) return nullptr;
  const std::optional<int64_t> a = MatrixStride(Leading(call.inputs[0].dims), batch);
  const std::optional<int64_t> b = MatrixStride(Leading(call.inputs[1].dims), batch);
  if (!a || !b) return "batch without one stride";
  if (*a == 1 && *b == 0 && !product.transpose_a) {
    product.a.rows *= count;
    product.y.rows *= count;
    return nullptr;
  }
  if (count > kMostBatch) return "size";
  for (ProductMatrix* matrix : {&product.a, &product.b, &product.y}) {
    matrix->batch = count;
    matrix->batch_stride = matrix->rows * matrix->columns;
  }
  product.a.batch_stride *= *a;
  product.b.batch_stride *= *b;
  return nullptr;
}

// Steps: one sum with another tensor, and relu behind it.
const char* SetSteps(const OpCall& call, Product& product) {
  const std::string& steps = call.text("epilogue");
  if (steps == "add" || steps == "add,relu") product.added = kAddedInput;
  product.relu = steps == "relu" || steps == "add,relu";
  return steps.empty() || product.added >= 0 || product.relu ? nullptr : "epilogue step";
}

}  // namespace

int64_t ProductMatrix::AlignmentBytes(int64_t first_bytes) const {
  const int64_t matrix = rows * columns * BytesOf(type);
  return std::gcd(std::gcd(first_bytes, matrix), batch == 1 ? 0 : batch_stride * BytesOf(type));
}

const char* DescribeProduct(const OpCall& call, bool tf32, Product& product) {
  const DType in = call.inputs[0].dtype, out = call.outputs[0].dtype;
  if (!LtTypeOf(in) || !LtTypeOf(out) || !Multiplies(in, out)) return "dtype";
  product.a = MatrixOf(call.inputs[0]);
  product.b = MatrixOf(call.inputs[1]);
  product.y = MatrixOf(call.outputs[0]);
  if (call.inputs[0].elements() == 0 || call.inputs[1].elements() == 0 ||
      call.outputs[0].elements() == 0)
    return "no elements";
  product.transpose_a = call.integer("transpose_a") != 0;
  product.transpose_b = call.integer("transpose_b") != 0;
  product.compute = in == DType::kF64           ? LtCompute::kF64
                    : in == DType::kF32 && tf32 ? LtCompute::kTf32
                                                : LtCompute::kF32;
  product.has_bias = call.has_input(kBiasInput);
  product.narrows_bias = product.has_bias && call.inputs[kBiasInput].dtype != out;
  if (const char* reason = SetSteps(call, product); reason != nullptr) return reason;
  return SetBatch(call, product);
}

}  // namespace ridge::cuda
