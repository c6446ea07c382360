// matmul: y = a b (+ bias), over the last two dimensions; the ones before broadcast.
//
// With transpose_a a is [..., K, M] and taken transposed; with transpose_b b is [..., N, K].
// A weight of rank 2 under a batch gets its gradient from one product over all rows, not from a
// batch of products that are then summed.
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/keep_f32.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/epilogue.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr size_t kBias = 2, kFirstExtra = 3;

// Extents and strides of one operand, seen as [..., rows, cols] after its transposition.
struct Operand {
  Dims batch;
  int64_t rows, cols, row_stride, col_stride;
};

Operand ViewOperand(const TensorType& type, bool transpose) {
  const Dims& d = type.dims;
  const int64_t outer = d[d.size() - 2], inner = d[d.size() - 1];
  Operand plain{Dims(d.begin(), d.end() - 2), outer, inner, inner, 1};
  if (!transpose) return plain;
  return {plain.batch, inner, outer, 1, inner};
}

Operand ViewA(const OpCall& call) {
  return ViewOperand(call.inputs[0], call.integer("transpose_a") != 0);
}
Operand ViewB(const OpCall& call) {
  return ViewOperand(call.inputs[1], call.integer("transpose_b") != 0);
}

Status CheckMatrix(const OpCall& call, const char* name, const TensorType& type) {
  RIDGE_RETURN_IF_ERROR(CheckOperand(call, name, type, Operands::kNumber));
  if (type.rank() >= 2) return Status();
  return CallError(call, fmt::format("{} is {}; its rank must be at least 2. hint: reshape it to a "
                                     "matrix",
                                     name, TypeToString(type)));
}

Status InnerError(const OpCall& call, const Operand& a, const Operand& b) {
  const char* hint = "";
  if (b.cols == a.cols) {
    hint = call.integer("transpose_b") != 0 ? ". hint: transpose_b=0 multiplies by b as it is"
                                            : ". hint: transpose_b=1 multiplies by b transposed";
  }
  return CallError(
      call, fmt::format("inner dimensions differ: a is {}, b is {}; {} must equal {}{}",
                        TypeToString(call.inputs[0]), TypeToString(call.inputs[1]), a.cols, b.rows,
                        hint));
}

Status CheckOperands(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckMatrix(call, "a", call.inputs[0]));
  RIDGE_RETURN_IF_ERROR(CheckMatrix(call, "b", call.inputs[1]));
  if (call.inputs[0].dtype != call.inputs[1].dtype) {
    return CallError(call, fmt::format("a is {} and b is {}; they must have one dtype. hint: use "
                                       "cast",
                                       TypeToString(call.inputs[0]), TypeToString(call.inputs[1])));
  }
  const Operand a = ViewA(call), b = ViewB(call);
  return a.cols == b.rows ? Status() : InnerError(call, a, b);
}

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckOperands(call));
  const Operand a = ViewA(call), b = ViewB(call);
  Result<Dims> batch = BroadcastDims(a.batch, b.batch);
  if (!batch.ok()) return CallError(call, "batch dimensions: " + batch.status().message());
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, ProductDType(call));
  TensorType out{dtype, *std::move(batch)};
  out.dims.insert(out.dims.end(), {a.rows, b.cols});
  const TensorType bias{BiasDType(call, kBias, out.dtype), {b.cols}};
  if (call.has_input(kBias) && call.inputs[kBias] != bias) {
    return CallError(call, fmt::format("bias is {}; it must be {}, one for each column of the "
                                       "output",
                                       TypeToString(call.inputs[kBias]), TypeToString(bias)));
  }
  RIDGE_RETURN_IF_ERROR(CheckEpilogue(call, kFirstExtra, out));
  return std::vector<TensorType>{std::move(out)};
}

// K multiply-adds an output element, one more add for the bias; everything is read once.
Cost EstimateCost(const OpCall& call) {
  const TensorType& out = call.outputs[0];
  const int64_t each = 2 * ViewA(call).cols + (call.has_input(kBias) ? 1 : 0);
  return StreamingCost(call, out.elements() * each + EpilogueFlops(call, out));
}

// One product: y[M,N] = a b + bias.
void Multiply(const Operand& va, const Operand& vb, const double* a, const double* b,
              const double* bias, double* y) {
  for (int64_t m = 0; m < va.rows; ++m) {
    for (int64_t n = 0; n < vb.cols; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < va.cols; ++k) {
        sum += a[m * va.row_stride + k * va.col_stride] * b[k * vb.row_stride + n * vb.col_stride];
      }
      y[m * vb.cols + n] = sum + (bias == nullptr ? 0 : bias[n]);
    }
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Operand a = ViewA(call), b = ViewB(call);
  const Dims& dims = call.outputs[0].dims;
  const Dims batch(dims.begin(), dims.end() - 2);
  const Dims a_strides = BroadcastStrides(a.batch, batch);
  const Dims b_strides = BroadcastStrides(b.batch, batch);
  const double* bias = call.has_input(kBias) ? in[kBias] : nullptr;
  std::vector<int64_t> a_of(static_cast<size_t>(ElementCount(batch)));  // matrix of a for each of y
  ForEachStrided(batch, a_strides, 0,
                 [&](int64_t i, int64_t at) { a_of[static_cast<size_t>(i)] = at; });
  ForEachStrided(batch, b_strides, 0, [&](int64_t i, int64_t b_at) {
    const double* a_data = in[0] + a_of[static_cast<size_t>(i)] * a.rows * a.cols;
    Multiply(a, b, a_data, in[1] + b_at * b.rows * b.cols, bias, out[0] + i * a.rows * b.cols);
  });
  ApplyEpilogue(call, in, kFirstExtra, out[0]);
}

// A tensor as a matrix [all rows, its last extent].
Value AsRows(Value v) {
  const Dims dims = v.dims();
  const Dims leading(dims.begin(), dims.end() - 1);
  return ReshapeExactly(v, {ElementCount(leading), dims.back()});
}

Value SwapLastTwo(Value v) {
  std::vector<int64_t> permutation;
  const auto rank = static_cast<int64_t>(v.dims().size());
  for (int64_t d = 0; d < rank; ++d) permutation.push_back(d);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return Transpose(v, permutation);
}

// dy as the operands are.
Value GradOperand(GradBuilder& g) { return Cast(g.dy(), g.x().dtype()); }

// da = dy b^T, or its transpose b dy^T.
Value GradA(GradBuilder& g, bool ta, bool tb) {
  const Value dy = GradOperand(g), b = g.x(1);
  return ta ? MatMulLike(g.attrs(), b, dy, tb, true) : MatMulLike(g.attrs(), dy, b, false, !tb);
}

// db = a^T dy, or its transpose dy^T a.
Value GradB(GradBuilder& g, Value a, Value dy, bool ta, bool tb) {
  return tb ? MatMulLike(g.attrs(), dy, a, true, ta) : MatMulLike(g.attrs(), a, dy, !ta, false);
}

// Whether b is one matrix that a whole batch of a's is multiplied by.
bool SharesB(GradBuilder& g) {
  const Dims a = g.x().dims(), b = g.x(1).dims(), y = g.y().dims();
  const Dims a_batch(a.begin(), a.end() - 2), b_batch(b.begin(), b.end() - 2);
  const Dims y_batch(y.begin(), y.end() - 2);
  return !y_batch.empty() && b_batch == Dims(b_batch.size(), 1) &&
         ElementCount(a_batch) == ElementCount(y_batch);
}

Value GradOfSharedB(GradBuilder& g, bool ta, bool tb) {
  const Dims dims = g.x(1).dims();
  const Value a = ta ? SwapLastTwo(g.x()) : g.x();
  const Value dy = AsRows(GradOperand(g));
  const Value db = GradB(g, AsRows(a), dy, /*ta=*/false, tb);
  return ReshapeExactly(db, dims);
}

// dbias = sum of dy over all its rows.
Value GradBias(GradBuilder& g) { return SumAs(AsRows(g.dy()), {0}, g.x(kBias).dtype()); }

void Gradient(GradBuilder& g) {
  if (RefusesEpilogueGradient(g, "matmul")) return;
  const bool ta = g.integer("transpose_a") != 0, tb = g.integer("transpose_b") != 0;
  if (g.needs_dx(0)) g.dx() = GradA(g, ta, tb);
  if (g.needs_dx(1) && SharesB(g)) {
    g.dx(1) = GradOfSharedB(g, ta, tb);
  } else if (g.needs_dx(1)) {
    g.dx(1) = GradB(g, g.x(), GradOperand(g), ta, tb);
  }
  if (g.needs_dx(kBias)) g.dx(kBias) = GradBias(g);
}

// Rows of a, columns of b, what is summed, and the dimensions before them.
Axes FindAxes(const OpCall& call) {
  const int rank = call.outputs[0].rank();
  const int a_end = call.inputs[0].rank(), b_end = call.inputs[1].rank();
  const int a_rows = call.integer("transpose_a") != 0 ? a_end - 1 : a_end - 2;
  const int b_cols = call.integer("transpose_b") != 0 ? b_end - 2 : b_end - 1;
  Axes axes = PointwiseAxes(call);  // right for bias, the epilogue's inputs and the batch
  for (Factor& factor : axes) {
    const int d = factor.outputs[0];
    if (d == rank - 2) factor.inputs[0] = a_rows, factor.inputs[1] = Factor::kNone;
    if (d == rank - 1) factor.inputs[0] = Factor::kNone, factor.inputs[1] = b_cols;
  }
  return axes;
}

// What is summed too, unless something is added to the sum.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes = FindAxes(call);
  if (call.inputs.size() > kFirstExtra || call.has_input(kBias) || !call.text("epilogue").empty())
    return axes;
  const int a_end = call.inputs[0].rank(), b_end = call.inputs[1].rank();
  const int a_cols = call.integer("transpose_a") != 0 ? a_end - 2 : a_end - 1;
  const int b_rows = call.integer("transpose_b") != 0 ? b_end - 1 : b_end - 2;
  axes.push_back(FactorOf(call, {a_cols, b_rows}, {}, Factor::Over::kSum));
  return axes;
}

}  // namespace

OpDef MatmulDef() {
  return {
      .name = "matmul",
      .doc =
          "y [..., M, N] = a [..., M, K] b [..., K, N] + bias [N]; leading dimensions broadcast. "
          "transpose_a=1 takes a as [..., K, M], transpose_b=1 takes b as [..., N, K]. "
          "extra and y are of `out_dtype`, empty: that of a and b; bias is too, or f32. With "
          "keep_f32=1 mixed precision leaves it and its gradient's products in f32; with "
          "narrow_result=1 it may store y in 16 bits though an output is computed from it.",
      .input_names = {"a", "b", "bias?", "extra...?"},
      .output_names = {"y"},
      .attr_defaults = {{"transpose_a", 0},
                        {"transpose_b", 0},
                        {"out_dtype", ""},
                        {"keep_f32", 0},
                        {"narrow_result", 0},
                        {"epilogue", ""}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .onnx = {"MatMul", 9, 13, 9},
      .axes = FindAxes,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
