// ONNX converters: the linear part of ai.onnx.ml, as scikit-learn's exporters write it.
//
// Coefficients lie in attributes, not in initializers: they are constants here, and what lies
// before these operators can be trained.  Trees, strings and maps are not read; ZipMap, which only
// turns a matrix of scores into maps from label to score, passes the matrix on.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

Value Row(GraphBuilder& b, DType dtype, const std::vector<double>& values, Dims dims) {
  Tensor row({dtype, std::move(dims)});
  for (size_t i = 0; i < values.size(); ++i)
    StoreFromDouble(dtype, row.mutable_data(), static_cast<int64_t>(i), values[i]);
  return b.Constant(std::move(row));
}

// Input 0 as floats [N,C]; a single row may come as [C].
Result<Value> Samples(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const TensorType type = n.type(0);
  if (type.rank() != 1 && type.rank() != 2)
    return n.Error(fmt::format("X is {}; it must be [N,C] or [C]", TypeToString(type)));
  Value x = n[0];
  if (type.rank() == 1) x = ReshapeExactly(x, {1, type.dims[0]});
  x = Cast(x, IsFloat(type.dtype) ? type.dtype : DType::kF32);
  RIDGE_RETURN_IF_ERROR(n.status());
  return x;
}

// x coefficients^T + intercepts, [N, rows].
Result<Value> Scores(OnnxNode& n, Value x, int64_t rows) {
  GraphBuilder& b = n.b();
  const std::vector<double> coefficients = n.numbers("coefficients");
  const std::vector<double> intercepts = n.numbers("intercepts");
  const int64_t columns = x.dims()[1];
  if (rows < 1 || columns < 1 || static_cast<int64_t>(coefficients.size()) / rows != columns ||
      static_cast<int64_t>(coefficients.size()) % rows != 0)
    return n.Error(fmt::format("{} coefficients; there must be {} for each of {} columns",
                               coefficients.size(), rows, columns));
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows)
    return n.Error(fmt::format("{} intercepts; there must be {}", intercepts.size(), rows));
  const DType dtype = x.dtype();
  Value y = MatMul(x, Row(b, dtype, coefficients, {rows, columns}), false, /*transpose_b=*/true);
  if (!intercepts.empty()) y = y + Row(b, dtype, intercepts, {rows});
  return y;
}

Result<Value> PostTransform(OnnxNode& n, Value scores) {
  const std::string name = n.text("post_transform", "NONE");
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return Sigmoid(scores);
  if (name == "SOFTMAX") return Op("softmax", {scores}, {{"axis", -1}});
  return n.Unsupported(
      fmt::format("post_transform is {}; NONE, LOGISTIC and SOFTMAX are supported", name));
}

Result<Value> ConvertLinearRegressor(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Value x, Samples(n));
  RIDGE_ASSIGN_OR_RETURN(Value scores, Scores(n, x, n.integer("targets", 1)));
  RIDGE_ASSIGN_OR_RETURN(scores, PostTransform(n, scores));
  return scores;
}

// One row of coefficients for two classes: the first class has the negative score.
Status ConvertLinearClassifier(OnnxNode& n) {
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(const Value x, Samples(n));
  std::vector<int64_t> labels = n.integers("classlabels_ints");
  const size_t classes = std::max(labels.size(), n.texts("classlabels_strings").size());
  const std::vector<double> coefficients = n.numbers("coefficients");
  const auto columns = static_cast<size_t>(x.dims()[1]);
  const bool one_row = classes == 2 && coefficients.size() == columns;
  RIDGE_ASSIGN_OR_RETURN(Value scores, Scores(n, x, one_row ? 1 : static_cast<int64_t>(classes)));
  if (one_row) scores = Concat({-scores, scores}, 1);
  RIDGE_ASSIGN_OR_RETURN(scores, PostTransform(n, scores));
  n.Set(1, scores);
  if (labels.empty() || !n.wants(0)) return n.status();
  if (labels.size() != classes)
    return n.Error(fmt::format("{} labels for {} classes", labels.size(), classes));
  const Value best = Op("argmax", {scores}, {{"axis", 1}});
  const Value names = b.Constant(Tensor::FromInts({static_cast<int64_t>(labels.size())}, labels));
  n.Set(0, Gather(names, best));
  return n.status();
}

// x / norm(x), row by row; rows of zeros stay.
Result<Value> ConvertNormalizer(OnnxNode& n) {
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(const Value x, Samples(n));
  const std::string norm = n.text("norm", "MAX");
  Value size;
  if (norm == "MAX") size = Op("reduce_max", {Abs(x)}, {{"axes", {1}}, {"keep_dims", 1}});
  if (norm == "L1") size = Sum(Abs(x), {1}, /*keep_dims=*/true);
  if (norm == "L2") size = Sqrt(Sum(Square(x), {1}, /*keep_dims=*/true));
  if (!size.valid()) return n.Error(fmt::format("norm is '{}'; it must be MAX, L1 or L2", norm));
  const DType dtype = x.dtype();
  const Value is_zero = Equal(size, b.Scalar(dtype, 0));
  return x / Where(is_zero, b.Scalar(dtype, 1), size);
}

// One number for all columns, or one for each.
Result<Value> Column(OnnxNode& n, const char* name, Value x) {
  const std::vector<double> values = n.numbers(name);
  const int64_t columns = x.dims()[1];
  const auto count = static_cast<int64_t>(values.size());
  if (count == 1 || count == columns) return Row(n.b(), x.dtype(), values, {count});
  return n.Error(fmt::format("{} {}s; there must be 1 or {}", count, name, columns));
}

Result<Value> ConvertScaler(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Value x, Samples(n));
  RIDGE_ASSIGN_OR_RETURN(const Value offset, Column(n, "offset", x));
  RIDGE_ASSIGN_OR_RETURN(const Value scale, Column(n, "scale", x));
  return (x - offset) * scale;
}

Result<Value> ConvertBinarizer(OnnxNode& n) {
  const DType dtype = n.type(0).dtype;
  const Value limit = n.b().Scalar(dtype, n.number("threshold", 0));
  return Cast(n[0] > limit, dtype);
}

// Columns of the last axis, by their numbers.
Result<Value> ConvertArrayFeatureExtractor(OnnxNode& n) {
  const TensorType x = n.type(0), y = n.type(1);
  if (x.rank() < 1 || y.dtype != DType::kI64)
    return n.Error(fmt::format("X is {}, Y is {}; Y must be i64 and X no scalar", TypeToString(x),
                               TypeToString(y)));
  const Value columns = ReshapeExactly(n[1], {ElementCount(y.dims)});
  const Value wide = x.rank() > 1 ? n[0] : ReshapeExactly(n[0], {1, x.dims[0]});
  const int64_t last = x.rank() > 1 ? x.rank() - 1 : 1;
  return Gather(wide, columns, last);
}

Result<Value> ConvertZipMap(OnnxNode& n) { return n[0]; }

constexpr OnnxConverter kConverters[] = {
    {"ai.onnx.ml", "ArrayFeatureExtractor", ConvertArrayFeatureExtractor, 2},
    {"ai.onnx.ml", "Binarizer", ConvertBinarizer, 1},
    {"ai.onnx.ml", "LinearClassifier", ConvertLinearClassifier},
    {"ai.onnx.ml", "LinearRegressor", ConvertLinearRegressor},
    {"ai.onnx.ml", "Normalizer", ConvertNormalizer},
    {"ai.onnx.ml", "Scaler", ConvertScaler},
    {"ai.onnx.ml", "ZipMap", ConvertZipMap, 1},
};

}  // namespace

std::span<const OnnxConverter> OnnxTabularConverters() { return kConverters; }

}  // namespace ridge
