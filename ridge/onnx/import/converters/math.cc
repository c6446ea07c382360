// ONNX converters: matrix products and scans.
#include "ridge/onnx/import/converters/math.h"

#include <fmt/format.h>

#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

// numpy's rule: a vector is a row on the left, a column on the right, and loses that 1 afterwards.
Result<Value> ConvertMatMul(OnnxNode& n) {
  const Dims a = n.dims(0), b = n.dims(1);
  if (a.empty() || b.empty()) {
    return n.Error(fmt::format("A is {}, B is {}; both need at least 1 dimension", DimsToString(a),
                               DimsToString(b)));
  }
  Value left = n[0], right = n[1];
  if (a.size() == 1) left = ReshapeExactly(left, {1, a[0]});
  if (b.size() == 1) right = ReshapeExactly(right, {b[0], 1});
  Value y = MatMul(left, right);
  if (!n.ok()) return n.status();
  Dims dims = y.dims();
  if (b.size() == 1) dims.pop_back();
  if (a.size() == 1) dims.erase(dims.end() - (b.size() == 1 ? 1 : 2));
  return ReshapeExactly(y, dims);
}

struct GemmOptions {
  double alpha, beta;
  AttrMap attrs;  // of matmul
  Dims dims;      // [M, N]
};

Result<GemmOptions> ReadGemm(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const Dims a = n.dims(0), b = n.dims(1);
  if (a.size() != 2 || b.size() != 2) {
    return n.Error(
        fmt::format("A is {}, B is {}; both must have rank 2", DimsToString(a), DimsToString(b)));
  }
  const bool ta = n.integer("transA", 0) != 0, tb = n.integer("transB", 0) != 0;
  GemmOptions o{n.number("alpha", 1), n.number("beta", 1), {}, {a[ta ? 1 : 0], b[tb ? 0 : 1]}};
  o.attrs = {{"transpose_a", ta}, {"transpose_b", tb}};
  if (!n.has_input(2)) {
    o.beta = 0;
    return o;
  }
  const Result<Dims> both = BroadcastDims(n.dims(2), o.dims);
  if (both.ok() && *both == o.dims) return o;
  return n.Error(fmt::format("C is {}; it must broadcast to {}", DimsToString(n.dims(2)),
                             DimsToString(o.dims)));
}

// s v; factors of integers are rounded once, at the end, by the caller's cast.
Value Scaled(Value v, double s) { return s == 1 ? v : v * s; }

// A bias for each column is part of the product; any other C is added to it.
Result<Value> ConvertGemm(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const GemmOptions o, ReadGemm(n));
  const DType dtype = n.type(0).dtype;
  const bool has_c = o.beta != 0, plain = o.alpha == 1 && (!has_c || o.beta == 1);
  const DType work = plain || IsFloat(dtype) ? dtype : DType::kF64;
  Value x = Cast(n[0], work), w = Cast(n[1], work);
  Value c = has_c ? Cast(n[2], work) : Value();
  const Dims row = {o.dims[1]};
  const bool is_bias = has_c && (n.dims(2) == row || n.dims(2) == Dims{1, o.dims[1]});
  if (is_bias && plain) {
    return Op("matmul", {x, w, ReshapeExactly(c, row)}, o.attrs);
  }
  Value y = Scaled(Op("matmul", {x, w}, o.attrs), o.alpha);
  if (has_c) y = y + Scaled(c, o.beta);
  return Cast(y, dtype);
}

Result<Value> ConvertScan(OnnxNode& n, const char* op) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.ConstantInt(1, "axis"));
  return Op(op, {n[0]},
            {{"axis", axis},
             {"exclusive", n.integer("exclusive", 0) != 0},
             {"reverse", n.integer("reverse", 0) != 0}});
}

Result<Value> ConvertCumSum(OnnxNode& n) { return ConvertScan(n, "cumsum"); }
Result<Value> ConvertCumProd(OnnxNode& n) { return ConvertScan(n, "cumprod"); }

Result<Value> ConvertDet(OnnxNode& n) { return Op("det", {n[0]}); }

constexpr OnnxConverter kConverters[] = {
    {"", "CumProd", ConvertCumProd}, {"", "CumSum", ConvertCumSum},
    {"", "Det", ConvertDet, 1},      {"", "Einsum", ConvertEinsum},
    {"", "Gemm", ConvertGemm},       {"", "MatMul", ConvertMatMul, 2},
};

}  // namespace

std::span<const OnnxConverter> OnnxMathConverters() { return kConverters; }

}  // namespace ridge
