// ONNX exporters: the same elements in another order, shape or number.
#include <algorithm>

#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

// Every extent as it is at run time: fixed; the input's at this place (0); what is left (-1, once);
// else computed from the inputs' shapes.
Status WriteReshape(OnnxNodeWriter& n) {
  const std::vector<ExportDim> from = n.extents().Dims(n.node().inputs[0]);
  std::vector<ExportDim> to = n.extents().Dims(n.node().outputs[0]);
  const bool empty = n.out_type().elements() == 0;
  std::vector<int64_t> dims;
  bool rest = false, simple = true;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d].fixed()) {
      dims.push_back(to[d].here);
    } else if (d < from.size() && from[d] == to[d] && !empty) {
      dims.push_back(0);
    } else {
      dims.push_back(-1);
      simple = simple && !rest && !empty;
      rest = true;
    }
  }
  AttrMap attrs;
  if (empty) {
    if (!n.HasOpset(14, "a shape with a 0")) return Status();
    attrs["allowzero"] = 1;
  }
  if (simple) {
    n.Emit("Reshape", {n.in(0), n.Ints(dims)}, attrs);
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string shape, n.Extents(to));
  n.Emit("Reshape", {n.in(0), shape}, attrs);
  return Status();
}

Status WriteExpand(OnnxNodeWriter& n) {
  RIDGE_ASSIGN_OR_RETURN(const std::string shape, n.Extents(n.extents().Dims(n.node().outputs[0])));
  n.Emit("Expand", {n.in(0), shape});
  return Status();
}

Status WriteTranspose(OnnxNodeWriter& n) {
  AttrMap attrs;
  if (!n.integers("permutation").empty()) attrs["perm"] = n.integers("permutation");
  n.Emit("Transpose", {n.in(0)}, attrs);
  return Status();
}

Status WriteSlice(OnnxNodeWriter& n) {
  RIDGE_ASSIGN_OR_RETURN(const std::string starts,
                         n.Extents(n.extents().Attribute(n.node(), "starts")));
  RIDGE_ASSIGN_OR_RETURN(const std::string ends,
                         n.Extents(n.extents().Attribute(n.node(), "ends")));
  std::vector<std::string> inputs = {n.in(0), starts, ends};
  std::vector<int64_t> axes = n.integers("axes");
  if (axes.empty()) {
    for (size_t a = 0; a < n.integers("starts").size(); ++a) {
      axes.push_back(static_cast<int64_t>(a));
    }
  }
  for (int64_t& axis : axes) axis += axis < 0 ? n.type(0).rank() : 0;
  inputs.push_back(n.Ints(axes));
  const std::vector<int64_t>& steps = n.integers("steps");
  const bool backward = std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s < 0; });
  if (backward && !n.HasOpset(11, "a step that is negative")) return Status();
  if (!steps.empty()) inputs.push_back(n.Ints(steps));
  n.Emit("Slice", inputs);
  return Status();
}

Status WriteConcat(OnnxNodeWriter& n) {
  n.Emit("Concat", n.ins(), {{"axis", n.axis("axis", n.type(0).rank())}});
  return Status();
}

Status WritePad(OnnxNodeWriter& n) {
  std::vector<ExportDim> amounts = n.extents().Attribute(n.node(), "before");
  for (const ExportDim& after : n.extents().Attribute(n.node(), "after")) {
    amounts.push_back(after);
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string pads, n.Extents(amounts));
  std::vector<std::string> inputs = {n.in(0), pads};
  const std::string& mode = n.text("mode");
  if (mode == "constant") inputs.push_back(n.Scalar(n.type(0).dtype, n.number("value")));
  if (mode == "wrap" && !n.HasOpset(19, "mode wrap")) return Status();
  n.Emit("Pad", inputs, {{"mode", mode}});
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"concat", WriteConcat},   {"expand", WriteExpand}, {"pad", WritePad},
    {"reshape", WriteReshape}, {"slice", WriteSlice},   {"transpose", WriteTranspose},
};

}  // namespace

std::span<const OnnxExporter> OnnxShapeExporters() { return kTable; }

}  // namespace ridge
