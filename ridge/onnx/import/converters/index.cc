// ONNX converters: gather, scatter, top-k and other look-ups.  Here: reading at indices.
//
// Look-ups by element or by coordinate become those of a flat array: the place of each element is
// computed first (element_index, ravel_index), then gather or scatter moves rows.
#include "ridge/onnx/import/converters/index.h"

#include <fmt/format.h>

#include "ridge/onnx/import/converter.h"

namespace ridge {

Value OnnxFlat(GraphBuilder& b, Value x) {
  return x.valid() ? ReshapeExactly(b, x, {b.type(x).elements()}) : x;
}

namespace {

Status ConvertGather(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  n.Set(0, n.b().Op("gather", {n.input(0), n.input(1)}, {{"axis", n.integer("axis", 0)}}));
  return n.status();
}

Status ConvertGatherElements(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  GraphBuilder& b = n.b();
  const Value places =
      b.Op("element_index", {n.input(1)}, {{"dims", n.dims(0)}, {"axis", n.integer("axis", 0)}});
  n.Set(0, b.Op("gather", {OnnxFlat(b, n.input(0)), places}));
  return n.status();
}

// data [batch.., K extents, inner..], indices [batch.., n.., K] -> [batch.., n.., inner..].
Status ConvertGatherNd(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const Dims dims = n.dims(0), indices = n.dims(1);
  const int64_t batch = n.integer("batch_dims", 0);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t width = indices.empty() ? -1 : indices.back();
  if (batch < 0 || batch > rank || width < 0 || width > rank - batch) {
    return n.Error(
        fmt::format("batch_dims is {}, data is {}, indices is {}; data has too few "
                    "dimensions",
                    batch, DimsToString(dims), DimsToString(indices)));
  }
  const auto split = static_cast<size_t>(batch + width);
  const Dims named(dims.begin(), dims.begin() + batch + width);
  GraphBuilder& b = n.b();
  const Value places = b.Op("ravel_index", {n.input(1)}, {{"dims", named}, {"batch_dims", batch}});
  Dims rows = {ElementCount(named)};
  rows.insert(rows.end(), dims.begin() + static_cast<int64_t>(split), dims.end());
  n.Set(0, b.Op("gather", {ReshapeExactly(b, n.input(0), rows), places}));
  return n.status();
}

constexpr OnnxConverter kConverters[] = {
    {"", "ArgMax", ConvertArgMax},
    {"", "ArgMin", ConvertArgMin},
    {"", "Compress", ConvertCompress},
    {"", "Gather", ConvertGather},
    {"", "GatherElements", ConvertGatherElements},
    {"", "GatherND", ConvertGatherNd},
    {"", "Hardmax", ConvertHardmax},
    {"", "NonMaxSuppression", ConvertNonMaxSuppression},
    {"", "NonZero", ConvertNonZero},
    {"", "Scatter", ConvertScatterElements},
    {"", "ScatterElements", ConvertScatterElements},
    {"", "ScatterND", ConvertScatterNd},
    {"", "TensorScatter", ConvertTensorScatter},
    {"", "TopK", ConvertTopK},
    {"", "Unique", ConvertUnique},
};

}  // namespace

std::span<const OnnxConverter> OnnxIndexConverters() { return kConverters; }

}  // namespace ridge
