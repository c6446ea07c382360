// ONNX exporters: normalizations, softmax and cross entropy.
#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

// Before opset 13 it is along all axes from this one on.
Status WriteAlong(OnnxNodeWriter& n, const char* op_type) {
  const int rank = n.type(0).rank();
  const int64_t axis = n.axis("axis", rank);
  if (axis != rank - 1 && !n.HasOpset(13, "an axis that is not the last")) return Status();
  n.Emit(op_type, {n.in(0)}, {{"axis", axis}});
  return Status();
}

Status WriteSoftmax(OnnxNodeWriter& n) { return WriteAlong(n, "Softmax"); }
Status WriteLogSoftmax(OnnxNodeWriter& n) { return WriteAlong(n, "LogSoftmax"); }

// Before opset 15 scale and statistics must have the type of x.
Status WriteBatchNorm(OnnxNodeWriter& n) {
  const DType x = n.type(0).dtype;
  std::vector<std::string> inputs = {n.in(0)};
  for (size_t i = 1; i < 5; ++i) {
    inputs.push_back(n.opset() >= 15 ? n.in(i) : n.Cast(n.in(i), n.type(i).dtype, x));
  }
  n.Emit("BatchNormalization", inputs, {{"epsilon", n.number("epsilon")}});
  return Status();
}

std::vector<int64_t> AxesFrom(int64_t axis, size_t rank) {
  std::vector<int64_t> axes;
  for (int64_t a = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
       a < static_cast<int64_t>(rank); ++a) {
    axes.push_back(a);
  }
  return axes;
}

// Before opset 17: mean, variance and the formula, in the type of the statistics.
Status ComposeLayerNorm(OnnxNodeWriter& n) {
  const DType dtype = n.out_type(1).dtype;
  const std::vector<int64_t> axes = AxesFrom(n.integer("axis"), n.type(0).dims.size());
  const std::string x = n.Cast(n.in(0), n.type(0).dtype, dtype);
  const std::string centered = n.Temp("Sub", {x, n.Reduce("ReduceMean", x, axes)});
  const std::string var = n.Reduce("ReduceMean", n.Temp("Mul", {centered, centered}), axes);
  const std::string shifted = n.Temp("Add", {var, n.Scalar(dtype, n.number("epsilon"))});
  std::string y = n.Temp("Div", {centered, n.Temp("Sqrt", {shifted})});
  if (n.has_input(1)) y = n.Temp("Mul", {y, n.in(1)});
  if (n.has_input(2)) y = n.Temp("Add", {y, n.in(2)});
  n.Emit("Identity", {n.Cast(y, dtype, n.out_type().dtype)});
  return Status();
}

// Input 1, or ones: ONNX wants a scale.
Result<std::string> Scale(OnnxNodeWriter& n, DType dtype) {
  const TensorType& x = n.type(0);
  if (n.has_input(1)) return n.As(1, dtype);
  const std::vector<ExportDim> dims = n.extents().Dims(n.node().inputs[0]);
  const std::vector<ExportDim> row(dims.begin() + n.axis("axis", x.rank()), dims.end());
  RIDGE_ASSIGN_OR_RETURN(const std::string shape, n.Extents(row));
  return n.Temp("Expand", {n.Scalar(dtype, 1), shape});
}

Status WriteLayerNorm(OnnxNodeWriter& n) {
  if (n.used(1) || n.used(2)) return n.Unsupported("its mean or rstd is read elsewhere");
  if (n.opset() < 17) return ComposeLayerNorm(n);
  const DType dtype = n.ComputeInWidest();
  RIDGE_ASSIGN_OR_RETURN(const std::string scale, Scale(n, dtype));
  std::vector<std::string> inputs = {n.As(0, dtype), scale};
  if (n.has_input(2)) inputs.push_back(n.As(2, dtype));
  n.EmitRounded("LayerNormalization", inputs,
                {{"axis", n.integer("axis")}, {"epsilon", n.number("epsilon")}}, dtype);
  return Status();
}

// Before opset 23: x / sqrt(mean of squares + epsilon), in the type of the statistics.
Status WriteRmsNorm(OnnxNodeWriter& n) {
  if (n.used(1)) return n.Unsupported("its rstd is read elsewhere");
  if (n.opset() >= 23) {
    const DType wide = n.ComputeInWidest();
    RIDGE_ASSIGN_OR_RETURN(const std::string scale, Scale(n, wide));
    n.EmitRounded("RMSNormalization", {n.As(0, wide), scale},
                  {{"axis", n.integer("axis")}, {"epsilon", n.number("epsilon")}}, wide);
    return Status();
  }
  const DType dtype = n.out_type(1).dtype;
  const std::vector<int64_t> axes = AxesFrom(n.integer("axis"), n.type(0).dims.size());
  const std::string x = n.Cast(n.in(0), n.type(0).dtype, dtype);
  const std::string mean = n.Reduce("ReduceMean", n.Temp("Mul", {x, x}), axes);
  const std::string shifted = n.Temp("Add", {mean, n.Scalar(dtype, n.number("epsilon"))});
  std::string y = n.Temp("Div", {x, n.Temp("Sqrt", {shifted})});
  if (n.has_input(1)) y = n.Temp("Mul", {y, n.in(1)});
  n.Emit("Identity", {n.Cast(y, dtype, n.type(0).dtype)});
  return Status();
}

// Classes are ONNX's dimension 1, and labels one rank below: rows first.
Status WriteCrossEntropy(OnnxNodeWriter& n) {
  const int64_t classes = n.type(0).dims.back();
  const DType out = n.out_type().dtype;
  const std::string logits = n.Cast(n.in(0), n.type(0).dtype, out);
  const std::string rows = n.Temp("Reshape", {logits, n.Ints({-1, classes})});
  const std::string labels = n.Temp("Reshape", {n.in(1), n.Ints({-1})});
  const std::string losses =
      n.Temp("SoftmaxCrossEntropyLoss", {rows, labels},
             {{"reduction", "none"}, {"ignore_index", n.integer("ignore_index")}});
  RIDGE_ASSIGN_OR_RETURN(const std::string y,
                         n.ReshapeTo(losses, n.extents().Dims(n.node().outputs[0])));
  n.Emit("Identity", {y});
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"batch_norm_inference", WriteBatchNorm},
    {"layer_norm", WriteLayerNorm},
    {"log_softmax", WriteLogSoftmax},
    {"rms_norm", WriteRmsNorm},
    {"softmax", WriteSoftmax},
    {"softmax_cross_entropy", WriteCrossEntropy},
};

}  // namespace

std::span<const OnnxExporter> OnnxNormExporters() { return kTable; }

}  // namespace ridge
