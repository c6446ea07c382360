// ONNX converters: matrix products and scans.
#include "ridge/onnx/import/converters/math.h"

#include <fmt/format.h>

#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

// numpy's rule: a vector is a row on the left, a column on the right, and loses that 1 afterwards.
Status ConvertMatMul(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const Dims a = n.dims(0), b = n.dims(1);
  if (a.empty() || b.empty()) {
    return n.Error(fmt::format("A is {}, B is {}; both need at least 1 dimension", DimsToString(a),
                               DimsToString(b)));
  }
  GraphBuilder& g = n.b();
  Value left = n.input(0), right = n.input(1);
  if (a.size() == 1) left = ReshapeExactly(g, left, {1, a[0]});
  if (b.size() == 1) right = ReshapeExactly(g, right, {b[0], 1});
  Value y = g.MatMul(left, right);
  if (!n.ok()) return n.status();
  Dims dims = g.dims(y);
  if (b.size() == 1) dims.pop_back();
  if (a.size() == 1) dims.erase(dims.end() - (b.size() == 1 ? 1 : 2));
  n.Set(0, ReshapeExactly(g, y, dims));
  return n.status();
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
  o.attrs = {{"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}};
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
Value Scaled(GraphBuilder& b, Value v, double s) { return s == 1 ? v : b.MulScalar(v, s); }

// A bias for each column is part of the product; any other C is added to it.
Status ConvertGemm(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const GemmOptions o, ReadGemm(n));
  GraphBuilder& b = n.b();
  const DType dtype = n.type(0).dtype;
  const bool has_c = o.beta != 0, plain = o.alpha == 1 && (!has_c || o.beta == 1);
  const DType work = plain || IsFloat(dtype) ? dtype : DType::kF64;
  Value x = b.Cast(n.input(0), work), w = b.Cast(n.input(1), work);
  Value c = has_c ? b.Cast(n.input(2), work) : Value();
  const Dims row = {o.dims[1]};
  const bool is_bias = has_c && (n.dims(2) == row || n.dims(2) == Dims{1, o.dims[1]});
  if (is_bias && plain) {
    n.Set(0, b.Op("matmul", {x, w, ReshapeExactly(b, c, row)}, o.attrs));
    return n.status();
  }
  Value y = Scaled(b, b.Op("matmul", {x, w}, o.attrs), o.alpha);
  if (has_c) y = b.Add(y, Scaled(b, c, o.beta));
  n.Set(0, b.Cast(y, dtype));
  return n.status();
}

Status ConvertScan(OnnxNode& n, const char* op) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.KnownInt(1, "axis"));
  n.Set(0, n.b().Op(op, {n.input(0)},
                    {{"axis", axis},
                     {"exclusive", int64_t{n.integer("exclusive", 0) != 0}},
                     {"reverse", int64_t{n.integer("reverse", 0) != 0}}}));
  return n.status();
}

Status ConvertCumSum(OnnxNode& n) { return ConvertScan(n, "cumsum"); }
Status ConvertCumProd(OnnxNode& n) { return ConvertScan(n, "cumprod"); }

Status ConvertDet(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  n.Set(0, n.b().Op("det", {n.input(0)}));
  return n.status();
}

constexpr OnnxConverter kConverters[] = {
    {"", "CumProd", ConvertCumProd}, {"", "CumSum", ConvertCumSum}, {"", "Det", ConvertDet},
    {"", "Einsum", ConvertEinsum},   {"", "Gemm", ConvertGemm},     {"", "MatMul", ConvertMatMul},
};

}  // namespace

std::span<const OnnxConverter> OnnxMathConverters() { return kConverters; }

}  // namespace ridge
