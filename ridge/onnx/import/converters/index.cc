// ONNX converters: gather, scatter, top-k and other look-ups.  Here: reading at indices.
//
// Look-ups by element or by coordinate become those of a flat array: the place of each element is
// computed first (element_index, ravel_index), then gather or scatter moves rows.
#include "ridge/onnx/import/converters/index.h"

#include <fmt/format.h>

#include "ridge/onnx/import/converter.h"

namespace ridge {

Value OnnxFlat(Value x) { return x.valid() ? ReshapeExactly(x, {x.type().elements()}) : x; }

namespace {

Result<Value> ConvertGather(OnnxNode& n) {
  const Value x = n[0], indices = n[1];
  return Gather(x, indices, n.integer("axis", 0));
}

Result<Value> ConvertGatherElements(OnnxNode& n) {
  const Value places =
      Op("element_index", {n[1]}, {{"dims", n.dims(0)}, {"axis", n.integer("axis", 0)}});
  return Gather(OnnxFlat(n[0]), places);
}

// data [batch.., K extents, inner..], indices [batch.., n.., K] -> [batch.., n.., inner..].
Result<Value> ConvertGatherNd(OnnxNode& n) {
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
  const Value places = Op("ravel_index", {n[1]}, {{"dims", named}, {"batch_dims", batch}});
  Dims rows = {ElementCount(named)};
  rows.insert(rows.end(), dims.begin() + static_cast<int64_t>(split), dims.end());
  return Gather(ReshapeExactly(n[0], rows), places);
}

constexpr OnnxConverter kConverters[] = {
    {"", "ArgMax", ConvertArgMax},
    {"", "ArgMin", ConvertArgMin},
    {"", "Compress", ConvertCompress, 2},
    {"", "Gather", ConvertGather, 2},
    {"", "GatherElements", ConvertGatherElements, 2},
    {"", "GatherND", ConvertGatherNd, 2},
    {"", "Hardmax", ConvertHardmax, 1},
    {"", "NonMaxSuppression", ConvertNonMaxSuppression},
    {"", "NonZero", ConvertNonZero, 1},
    {"", "Scatter", ConvertScatterElements, 3},
    {"", "ScatterElements", ConvertScatterElements, 3},
    {"", "ScatterND", ConvertScatterNd, 3},
    {"", "TensorScatter", ConvertTensorScatter, 2},
    {"", "TopK", ConvertTopK},
    {"", "Unique", ConvertUnique, 1},
};

}  // namespace

std::span<const OnnxConverter> OnnxIndexConverters() { return kConverters; }

}  // namespace ridge
