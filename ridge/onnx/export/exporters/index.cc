// ONNX exporters: elements chosen by indices.
//
// Where our operators skip an index out of range, ONNX calls it an error.
#include <algorithm>

#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

Status WriteGather(OnnxNodeWriter& n) {
  n.Emit("Gather", {n.in(0), n.in(1)}, {{"axis", n.axis("axis", n.type(0).rank())}});
  return Status();
}

std::string AsI64(OnnxNodeWriter& n, size_t input) {
  return n.Cast(n.in(input), n.type(input).dtype, DType::kI64);
}

// [n..] -> [n..,1]: coordinates of rows, as ScatterND reads them.
Result<std::string> AsRows(OnnxNodeWriter& n, size_t input) {
  std::vector<ExportDim> dims = n.extents().Dims(n.node().inputs[input]);
  dims.push_back({1, 1});
  return n.ReshapeTo(AsI64(n, input), dims);
}

bool HasReduction(OnnxNodeWriter& n, const std::string& reduction) {
  const bool late = reduction == "max" || reduction == "min";
  return n.HasOpset(late ? 18 : reduction == "none" ? 11 : 16, "reduction " + reduction);
}

Status WriteScatter(OnnxNodeWriter& n) {
  const std::string& reduction = n.text("reduction");
  if (!HasReduction(n, reduction)) return Status();
  AttrMap attrs;
  if (reduction != "none") attrs["reduction"] = reduction;
  RIDGE_ASSIGN_OR_RETURN(const std::string rows, AsRows(n, 1));
  n.Emit("ScatterND", {n.in(0), rows, n.in(2)}, attrs);
  return Status();
}

std::string Permuted(OnnxNodeWriter& n, const std::string& x, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return n.Temp("Transpose", {x}, {{"perm", order}});
}

// Axes [from, from + count) in front of the others.
std::vector<int64_t> InFront(int64_t from, int64_t count, int64_t rank) {
  std::vector<int64_t> order;
  for (int64_t a = 0; a < count; ++a) order.push_back(from + a);
  for (int64_t a = 0; a < rank; ++a) {
    if (a < from || a >= from + count) order.push_back(a);
  }
  return order;
}

// Axis 0 moved to `to`.
std::vector<int64_t> FromFront(int64_t to, int64_t rank) {
  std::vector<int64_t> order;
  for (int64_t a = 1; a < rank; ++a) order.push_back(a);
  order.insert(order.begin() + to, 0);
  return order;
}

// Into zeros whose axis lies in front, then back.
Status WriteScatterAdd(OnnxNodeWriter& n) {
  if (!HasReduction(n, "add")) return Status();
  std::vector<ExportDim> dims = n.extents().Dims(n.node().outputs[0]);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = n.axis("axis", static_cast<int>(rank));
  std::rotate(dims.begin(), dims.begin() + axis, dims.begin() + axis + 1);
  RIDGE_ASSIGN_OR_RETURN(const std::string shape, n.Extents(dims));
  const std::string zeros = n.Temp("Expand", {n.Scalar(n.out_type().dtype, 0), shape});
  RIDGE_ASSIGN_OR_RETURN(const std::string rows, AsRows(n, 0));
  const std::string updates =
      Permuted(n, n.in(1), InFront(axis, n.type(0).rank(), n.type(1).rank()));
  const AttrMap add = {{"reduction", "add"}};
  if (axis == 0) {
    n.Emit("ScatterND", {zeros, rows, updates}, add);
  } else {
    const std::string y = n.Temp("ScatterND", {zeros, rows, updates}, add);
    n.Emit("Transpose", {y}, {{"perm", FromFront(axis, rank)}});
  }
  return Status();
}

// Products of the extents behind each one.
std::vector<ExportDim> Strides(const std::vector<ExportDim>& dims) {
  std::vector<ExportDim> strides(dims.size(), ExportDim::Fixed(1));
  for (size_t d = dims.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * dims[d];
  }
  return strides;
}

// index + extent where it is negative.
std::string FromStart(OnnxNodeWriter& n, const std::string& index, const std::string& extent) {
  const std::string negative = n.Temp("Less", {index, n.Scalar(DType::kI64, 0)});
  return n.Temp("Where", {negative, n.Temp("Add", {index, extent}), index});
}

// i64: stride * (0, 1, .. count - 1), along `axis` of arrays of this rank.
Result<std::string> Steps(OnnxNodeWriter& n, const ExportDim& count, const ExportDim& stride,
                          int64_t axis, int64_t rank) {
  RIDGE_ASSIGN_OR_RETURN(const std::string end, n.Extents({count}));
  RIDGE_ASSIGN_OR_RETURN(const std::string by, n.Extents({stride}));
  const std::string range =
      n.Temp("Range", {n.Scalar(DType::kI64, 0), n.Reshape(end, {}), n.Scalar(DType::kI64, 1)});
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = -1;
  return n.Reshape(n.Temp("Mul", {range, by}), dims);
}

// The index times its stride, plus what the element's own place adds along the other axes.
Status WriteElementIndex(OnnxNodeWriter& n) {
  const std::vector<ExportDim> dims = n.extents().Attribute(n.node(), "dims");
  const std::vector<ExportDim> own = n.extents().Dims(n.node().outputs[0]);
  const std::vector<ExportDim> strides = Strides(dims);
  const int64_t rank = n.type(0).rank(), axis = n.axis("axis", n.type(0).rank());
  const auto at = static_cast<size_t>(axis);
  RIDGE_ASSIGN_OR_RETURN(const std::string extent, n.Extents({dims[at]}));
  RIDGE_ASSIGN_OR_RETURN(const std::string stride, n.Extents({strides[at]}));
  std::string place = n.Temp("Mul", {FromStart(n, AsI64(n, 0), extent), stride});
  for (int64_t d = 0; d < rank; ++d) {
    if (d == axis || own[static_cast<size_t>(d)] == ExportDim::Fixed(1)) continue;
    const auto i = static_cast<size_t>(d);
    RIDGE_ASSIGN_OR_RETURN(const std::string steps, Steps(n, own[i], strides[i], d, rank));
    place = n.Temp("Add", {place, steps});
  }
  n.Emit("Identity", {place});
  return Status();
}

// The sum of coordinates times strides over the last axis; batch coordinates are the row's own.
Status WriteRavelIndex(OnnxNodeWriter& n) {
  const std::vector<ExportDim> dims = n.extents().Attribute(n.node(), "dims");
  const std::vector<ExportDim> own = n.extents().Dims(n.node().outputs[0]);
  const std::vector<ExportDim> strides = Strides(dims);
  const int64_t batch = n.integer("batch_dims"), rank = n.type(0).rank();
  const std::vector<ExportDim> named(dims.begin() + batch, dims.end());
  RIDGE_ASSIGN_OR_RETURN(const std::string extents, n.Extents(named));
  RIDGE_ASSIGN_OR_RETURN(const std::string by, n.Extents({strides.begin() + batch, strides.end()}));
  const std::string parts = n.Temp("Mul", {FromStart(n, AsI64(n, 0), extents), by});
  // The outputs' extents come from the sum, so its axis goes away.
  const std::string sum = n.Reduce("ReduceSum", parts, {rank - 1});
  RIDGE_ASSIGN_OR_RETURN(std::string place, n.ReshapeTo(sum, own));
  for (int64_t d = 0; d < batch; ++d) {
    const auto i = static_cast<size_t>(d);
    RIDGE_ASSIGN_OR_RETURN(const std::string steps, Steps(n, own[i], strides[i], d, rank - 1));
    place = n.Temp("Add", {place, steps});
  }
  n.Emit("Identity", {place});
  return Status();
}

Status WriteTopK(OnnxNodeWriter& n) {
  n.Emit("TopK", {n.in(0), n.Ints({n.integer("k")})},
         {{"axis", n.axis("axis", n.type(0).rank())}, {"largest", n.integer("largest")}}, 2);
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"element_index", WriteElementIndex}, {"gather", WriteGather},
    {"ravel_index", WriteRavelIndex},     {"scatter", WriteScatter},
    {"scatter_add", WriteScatterAdd},     {"top_k", WriteTopK},
};

}  // namespace

std::span<const OnnxExporter> OnnxIndexExporters() { return kTable; }

}  // namespace ridge
