// ONNX converters: writing at indices.
#include <fmt/format.h>

#include "ridge/onnx/import/converters/index.h"

namespace ridge {

// x, places and updates flat.
Result<Value> ConvertScatterElements(OnnxNode& n) {
  const Dims dims = n.dims(0);
  if (n.dims(2) != n.dims(1)) {
    return n.Error(fmt::format("updates is {}, indices is {}; they must have one shape",
                               DimsToString(n.dims(2)), DimsToString(n.dims(1))));
  }
  const Value places =
      Op("element_index", {n[1]}, {{"dims", dims}, {"axis", n.integer("axis", 0)}});
  const Value y = Op("scatter", {OnnxFlat(n[0]), OnnxFlat(places), OnnxFlat(n[2])},
                     {{"reduction", n.text("reduction", "none")}});
  return ReshapeExactly(y, dims);
}

// data [K extents, inner..], indices [n.., K], updates [n.., inner..].
Result<Value> ConvertScatterNd(OnnxNode& n) {
  const Dims dims = n.dims(0), indices = n.dims(1);
  const int64_t width = indices.empty() ? -1 : indices.back();
  if (width < 0 || width > static_cast<int64_t>(dims.size())) {
    return n.Error(fmt::format("data is {}, indices is {}; data has too few dimensions",
                               DimsToString(dims), DimsToString(indices)));
  }
  const Dims named(dims.begin(), dims.begin() + width);
  const Value places = Op("ravel_index", {n[1]}, {{"dims", named}});
  Dims rows = {ElementCount(named)};
  rows.insert(rows.end(), dims.begin() + width, dims.end());
  const Value y = Op("scatter", {ReshapeExactly(n[0], rows), places, n[2]},
                     {{"reduction", n.text("reduction", "none")}});
  return ReshapeExactly(y, dims);
}

namespace {

// The cache as [batch, middle, length, inner]; the update has `steps` of the length.
struct Cache {
  int64_t batch, middle, length, inner, steps;
};

Result<Cache> ViewCache(OnnxNode& n) {
  const Dims dims = n.dims(0), update = n.dims(1);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis,
                         n.Axis(n.integer("axis", -2), static_cast<int>(dims.size())));
  const auto at = static_cast<size_t>(axis);
  Dims expected = dims;
  if (update.size() == dims.size()) expected[at] = update[at];
  if (axis == 0 || update != expected || update[at] > dims[at]) {
    return n.Error(
        fmt::format("the cache is {}, the update {}; along axis {}, not the first, it "
                    "may be shorter, all else must be equal",
                    DimsToString(dims), DimsToString(update), axis));
  }
  return Cache{dims[0], OnnxElementCount(dims, 1, at), dims[at],
               OnnxElementCount(dims, at + 1, dims.size()), update[at]};
}

// Where in its sample's cache each step goes: [batch, steps]; `length` or more: nowhere.
Result<Value> StepPlaces(OnnxNode& n, const Cache& c) {
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(const Value steps, OnnxIota(n, c.steps));
  Value start = OnnxFilled(b, {DType::kI64, {c.batch, 1}}, 0);
  if (n.has_input(2)) {
    if (n.dims(2) != Dims{c.batch}) {
      return n.Error(
          fmt::format("write_indices is {}; the batch has {}", DimsToString(n.dims(2)), c.batch));
    }
    start = ReshapeExactly(Cast(n[2], DType::kI64), {c.batch, 1});
  }
  const Value length = b.Scalar(DType::kI64, static_cast<double>(c.length));
  Value place = start + steps;
  const std::string mode = n.text("mode", "linear");
  if (mode == "circular") {
    const Value wrapped = place - length;
    place = Where(place >= length, wrapped, place);
  } else if (mode != "linear") {
    return n.Error(fmt::format("mode is \"{}\"; it must be linear or circular", mode));
  }
  const Value negative = place < b.Scalar(DType::kI64, 0);
  return Where(negative, length, Minimum(place, length));
}

}  // namespace

// Rows of `inner` numbers go to row (sample * middle + m) * length + place.
Result<Value> ConvertTensorScatter(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Cache c, ViewCache(n));
  RIDGE_ASSIGN_OR_RETURN(const Value place, StepPlaces(n, c));
  const int64_t lines = c.batch * c.middle;
  RIDGE_ASSIGN_OR_RETURN(const Value numbers, OnnxIota(n, lines));
  GraphBuilder& b = n.b();
  const Value line = ReshapeExactly(numbers, {c.batch, c.middle, 1});
  const Value place3 = ReshapeExactly(place, {c.batch, 1, c.steps});
  const Value length = b.Scalar(DType::kI64, static_cast<double>(c.length));
  const Value nowhere =
      b.Scalar(DType::kI64, static_cast<double>(lines) * static_cast<double>(c.length));
  const Value inside = line * length + place3;
  const Value row = Where(place3 < length, inside, nowhere);
  const Value y = Op("scatter", {ReshapeExactly(n[0], {lines * c.length, c.inner}), OnnxFlat(row),
                                 ReshapeExactly(n[1], {lines * c.steps, c.inner})});
  return ReshapeExactly(y, n.dims(0));
}

}  // namespace ridge
