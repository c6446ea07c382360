// ONNX converters: dropout and random numbers.
//
// Numbers come from counter-based streams (ops/shared/draws.h), so they differ from those of other
// runtimes, and are the same on every run.  A node with a `seed` takes its stream from the seed:
// two nodes of one seed draw the same, as ONNX has it.
#include "ridge/core/random.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

int64_t StreamOf(OnnxNode& n) {
  if (!n.has_attr("seed")) return n.Stream();
  return static_cast<int64_t>(StableHash(fmt::format("seed {}", n.number("seed", 0))));
}

// Dropout's `seed` is an integer, the others' a float.
int64_t DropoutStream(OnnxNode& n) {
  if (!n.has_attr("seed")) return n.Stream();
  return static_cast<int64_t>(StableHash(fmt::format("seed {}", n.integer("seed", 0))));
}

// The attribute `dtype`, else `fallback`.
Result<DType> DTypeAttr(OnnxNode& n, DType fallback) {
  if (!n.has_attr("dtype")) return fallback;
  const int64_t type = n.integer("dtype", 1);
  const std::optional<DType> dtype =
      type >= 0 && type < 128 ? DTypeFromOnnx(static_cast<int>(type)) : std::nullopt;
  if (dtype) return *dtype;
  return n.Error(fmt::format("dtype is {}; it must be a number type", type));
}

// Numbers of `dims`, made in f32 or wider and cast.
Value Draw(OnnxNode& n, const char* op, const Dims& dims, DType dtype, AttrMap attrs) {
  const DType wide = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  attrs["dims"] = dims;
  attrs["dtype"] = std::string(DTypeName(wide));
  attrs["stream"] = StreamOf(n);
  return Cast(Op(op, {n.Rng()}, std::move(attrs)), dtype);
}

Status CheckedDims(OnnxNode& n, const Dims& dims) {
  const Status status = CheckDims(dims);
  return status.ok() ? status : n.Error("shape: " + status.message());
}

Result<Value> ConvertDraw(OnnxNode& n, const char* op, const Dims& dims, DType fallback) {
  RIDGE_RETURN_IF_ERROR(CheckedDims(n, dims));
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(n, fallback));
  if (!IsFloat(dtype)) {
    return n.Error(fmt::format("dtype is {}; it must be a float type", DTypeName(dtype)));
  }
  const bool uniform = std::string_view(op) == "random_uniform";
  const AttrMap attrs =
      uniform ? AttrMap{{"low", n.number("low", 0)}, {"high", n.number("high", 1)}}
              : AttrMap{{"mean", n.number("mean", 0)}, {"scale", n.number("scale", 1)}};
  return Draw(n, op, dims, dtype, attrs);
}

Result<Value> ConvertRandomNormal(OnnxNode& n) {
  return ConvertDraw(n, "random_normal", n.integers("shape"), DType::kF32);
}

Result<Value> ConvertRandomUniform(OnnxNode& n) {
  return ConvertDraw(n, "random_uniform", n.integers("shape"), DType::kF32);
}

Result<Value> ConvertLike(OnnxNode& n, const char* op) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const TensorType type = n.type(0);
  return ConvertDraw(n, op, type.dims, type.dtype);
}

Result<Value> ConvertRandomNormalLike(OnnxNode& n) { return ConvertLike(n, "random_normal"); }
Result<Value> ConvertRandomUniformLike(OnnxNode& n) { return ConvertLike(n, "random_uniform"); }

// y = 1 where a number from [0, 1) is below the probability x, else 0.
Result<Value> ConvertBernoulli(OnnxNode& n) {
  const TensorType type = n.type(0);
  if (!IsFloat(type.dtype)) {
    return n.Error(fmt::format("input 0 is {}; it must be a float", TypeToString(type)));
  }
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(n, type.dtype));
  const DType wide = type.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const Value p = Cast(n[0], wide);
  const Value u = Draw(n, "random_uniform", type.dims, wide, {});
  return Cast(u < p, dtype);
}

// x [B,C] holds logarithms of probabilities, up to a constant.  The largest of x + Gumbel noise is
// a draw from them (Gumbel, 1954), and needs no running sum.
Result<Value> ConvertMultinomial(OnnxNode& n) {
  const TensorType type = n.type(0);
  const int64_t count = n.integer("sample_size", 1);
  if (!IsFloat(type.dtype) || type.rank() != 2 || type.dims[1] < 1 || count < 1) {
    return n.Error(
        fmt::format("input 0 is {} and sample_size {}; they must be a float [batch, "
                    "classes] and at least 1",
                    TypeToString(type), count));
  }
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(n, DType::kI32));
  const Dims dims = {type.dims[0], count, type.dims[1]};
  RIDGE_RETURN_IF_ERROR(CheckedDims(n, dims));
  const DType wide = type.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const Value x = ReshapeExactly(Cast(n[0], wide), {dims[0], 1, dims[2]});
  // -log(-log(u)), which is -inf at u = 0: never the largest.
  const Value u = Draw(n, "random_uniform", dims, wide, {});
  const Value gumbel = -Log(-Log(u));
  return Cast(Op("argmax", {x + gumbel}), dtype);
}

// Whether the node drops: always in training; else as the file says.
Result<bool> Drops(OnnxNode& n) {
  if (n.training()) return true;
  if (n.opset() < 12 || !n.has_input(2)) return false;
  RIDGE_ASSIGN_OR_RETURN(const int64_t training_mode, n.ConstantInt(2, "training_mode"));
  return training_mode != 0;
}

Result<double> DropoutRatio(OnnxNode& n) {
  double ratio = n.number("ratio", 0.5);
  if (n.opset() >= 12 && n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(ratio, n.ConstantNumber(1, "ratio"));
  }
  if (ratio >= 0 && ratio < 1) return ratio;
  return n.Error(fmt::format("ratio is {}; it must be at least 0 and below 1", ratio));
}

// Which elements are kept.  The same stream as y's: a mask is what dropout makes of ones.
Value Mask(OnnxNode& n, const TensorType& type, const AttrMap& attrs, bool drops) {
  GraphBuilder& b = n.b();
  const DType dtype = n.opset() < 10 ? type.dtype : DType::kBool;
  if (!drops) return Expand(b.Scalar(dtype, 1), type.dims);
  const Value ones = Expand(b.Scalar(DType::kF32, 1), type.dims);
  const Value kept = Op("dropout", {ones, n.Rng()}, attrs);
  return Cast(kept > b.Scalar(DType::kF32, 0), dtype);
}

Status ConvertDropout(OnnxNode& n) {
  const TensorType type = n.type(0);
  if (!IsFloat(type.dtype)) {
    return n.Error(fmt::format("input 0 is {}; it must be a float", TypeToString(type)));
  }
  RIDGE_ASSIGN_OR_RETURN(bool drops, Drops(n));
  double ratio = 0;
  if (drops) {
    RIDGE_ASSIGN_OR_RETURN(ratio, DropoutRatio(n));
  }
  drops = ratio > 0;
  const AttrMap attrs = {{"rate", ratio}, {"stream", DropoutStream(n)}};
  const Value x = n[0];
  n.Set(0, drops ? Op("dropout", {x, n.Rng()}, attrs) : x);
  if (n.wants(1)) n.Set(1, Mask(n, type, attrs, drops));
  return n.status();
}

constexpr OnnxConverter kConverters[] = {
    {"", "Bernoulli", ConvertBernoulli, 1},
    {"", "Dropout", ConvertDropout, 1},
    {"", "Multinomial", ConvertMultinomial, 1},
    {"", "RandomNormal", ConvertRandomNormal},
    {"", "RandomNormalLike", ConvertRandomNormalLike},
    {"", "RandomUniform", ConvertRandomUniform},
    {"", "RandomUniformLike", ConvertRandomUniformLike},
};

}  // namespace

std::span<const OnnxConverter> OnnxRandomConverters() { return kConverters; }

}  // namespace ridge
