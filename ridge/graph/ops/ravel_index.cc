// ravel_index: rows of coordinates -> row-major places, as numpy's ravel_multi_index; what
// gather_nd and scatter_nd of ONNX are made of.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/index_map.h"

namespace ridge {
namespace {

Status ShapesError(const OpCall& call) {
  return CallError(
      call, fmt::format("indices is {}, dims is {}, batch_dims is {}; indices must begin with the "
                        "batch dims and end with one coordinate for each other extent of dims",
                        TypeToString(call.inputs[0]), DimsToString(call.integers("dims")),
                        call.integer("batch_dims")));
}

// indices: i64 or i32 [batch.., n.., K] with dims = batch.. + K extents.  y: [batch.., n..].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const Dims &dims = call.integers("dims"), &indices = call.inputs[0].dims;
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 0, "indices"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "dims"));
  const int64_t batch = call.integer("batch_dims");
  const auto rank = static_cast<int64_t>(dims.size());
  if (indices.empty() || batch < 0 || batch > rank ||
      batch >= static_cast<int64_t>(indices.size()) || indices.back() != rank - batch) {
    return ShapesError(call);
  }
  for (int64_t d = 0; d < batch; ++d) {
    if (dims[static_cast<size_t>(d)] != indices[static_cast<size_t>(d)]) return ShapesError(call);
  }
  return std::vector<TensorType>{{DType::kI64, Dims(indices.begin(), indices.end() - 1)}};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.integers("dims");
  const auto batch = static_cast<size_t>(call.integer("batch_dims"));
  const size_t width = dims.size() - batch;
  const int64_t count = call.outputs[0].elements(), missing = ElementCount(dims);
  const Dims batch_dims(dims.begin(), dims.begin() + static_cast<int64_t>(batch));
  const int64_t batches = ElementCount(batch_dims);
  for (int64_t n = 0; n < count; ++n) {
    int64_t place = n / (count / batches);  // the batch; its dims are those of the array
    const double* row = in[0] + n * static_cast<int64_t>(width);
    for (size_t k = 0; k < width && place >= 0; ++k) {
      const int64_t extent = dims[batch + k];
      const int64_t at = PlaceOfIndex(row[k], extent);
      place = at < 0 ? -1 : place * extent + at;
    }
    out[0][n] = static_cast<double>(place < 0 ? missing : place);
  }
}

}  // namespace

OpDef RavelIndexDef() {
  return {
      .name = "ravel_index",
      .doc =
          "y [batch.., n..] = row-major places in an array of `dims` of the coordinates in the "
          "rows of indices [batch.., n.., K]; the first batch_dims coordinates are those of the "
          "row itself. Negative ones count from the end; for one out of range y is the number of "
          "elements, which names none.",
      .input_names = {"indices"},
      .output_names = {"y"},
      .attr_defaults = {{"dims", {}}, {"batch_dims", 0}},
      .required_attrs = {"dims"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .recompute = Recompute::kCheap,
      .reference = Reference,
  };
}

}  // namespace ridge
