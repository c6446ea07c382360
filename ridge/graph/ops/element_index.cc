// element_index: where gather_elements of ONNX reads: the row-major place in an array of `dims` of
// each element of indices.
//
// With it the element-wise look-ups are those of a flat array: y = gather(reshape(x), place), and
// its gradient and scattering need nothing of their own.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/index_map.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

// indices: i64 or i32, the rank of dims, no extent larger but that of `axis`.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const Dims &dims = call.integers("dims"), &indices = call.inputs[0].dims;
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 0, "indices"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "dims"));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "indices"));
  bool fits = indices.size() == dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d)
    fits = static_cast<int>(d) == axis || indices[d] <= dims[d];
  if (!fits) {
    return CallError(call, fmt::format("indices is {}, dims is {}; both need one rank, and no "
                                       "extent of indices may be larger but that of axis {}",
                                       TypeToString(call.inputs[0]), DimsToString(dims), axis));
  }
  return std::vector<TensorType>{{DType::kI64, indices}};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.integers("dims");
  const auto axis = static_cast<size_t>(CallAxis(call));
  const int64_t extent = dims[axis], along = RowMajorStrides(dims)[axis];
  const int64_t missing = ElementCount(dims);
  Dims strides = RowMajorStrides(dims);
  strides[axis] = 0;  // the index says where
  ForEachStrided(call.outputs[0].dims, strides, 0, [&](int64_t i, int64_t base) {
    const int64_t place = PlaceOfIndex(in[0][i], extent);
    out[0][i] = static_cast<double>(place < 0 ? missing : base + place * along);
  });
}

}  // namespace

OpDef ElementIndexDef() {
  return {
      .name = "element_index",
      .doc =
          "y = the row-major place in an array of `dims` of the element that each index names: "
          "its own position, with the index along `axis`. Negative indices count from the end; "
          "for one out of range y is the number of elements, which names none.",
      .input_names = {"indices"},
      .output_names = {"y"},
      .attr_defaults = {{"dims", {}}, {"axis", 0}},
      .required_attrs = {"dims"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .recompute = Recompute::kCheap,
      .reference = Reference,
  };
}

}  // namespace ridge
