// ONNX converters: writing at indices.
#include <fmt/format.h>

#include "ridge/onnx/import/converters/index.h"

namespace ridge {

// x, places and updates flat.
Status ConvertScatterElements(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const Dims dims = n.dims(0);
  GraphBuilder& b = n.b();
  const Value places =
      b.Op("element_index", {n.input(1)}, {{"dims", dims}, {"axis", n.integer("axis", 0)}});
  if (n.dims(2) != n.dims(1)) {
    return n.Error(fmt::format("updates is {}, indices is {}; they must have one shape",
                               DimsToString(n.dims(2)), DimsToString(n.dims(1))));
  }
  const Value y =
      b.Op("scatter", {OnnxFlat(b, n.input(0)), OnnxFlat(b, places), OnnxFlat(b, n.input(2))},
           {{"reduction", n.text("reduction", "none")}});
  n.Set(0, ReshapeExactly(b, y, dims));
  return n.status();
}

// data [K extents, inner..], indices [n.., K], updates [n.., inner..].
Status ConvertScatterNd(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const Dims dims = n.dims(0), indices = n.dims(1);
  const int64_t width = indices.empty() ? -1 : indices.back();
  if (width < 0 || width > static_cast<int64_t>(dims.size())) {
    return n.Error(fmt::format("data is {}, indices is {}; data has too few dimensions",
                               DimsToString(dims), DimsToString(indices)));
  }
  const Dims named(dims.begin(), dims.begin() + width);
  GraphBuilder& b = n.b();
  const Value places = b.Op("ravel_index", {n.input(1)}, {{"dims", named}});
  Dims rows = {ElementCount(named)};
  rows.insert(rows.end(), dims.begin() + width, dims.end());
  const Value y = b.Op("scatter", {ReshapeExactly(b, n.input(0), rows), places, n.input(2)},
                       {{"reduction", n.text("reduction", "none")}});
  n.Set(0, ReshapeExactly(b, y, dims));
  return n.status();
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
  return Cache{dims[0], OnnxExtent(dims, 1, at), dims[at], OnnxExtent(dims, at + 1, dims.size()),
               update[at]};
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
    start = ReshapeExactly(b, b.Cast(n.input(2), DType::kI64), {c.batch, 1});
  }
  const Value length = b.Scalar(DType::kI64, static_cast<double>(c.length));
  Value place = b.Add(start, steps);
  const std::string mode = n.text("mode", "linear");
  if (mode == "circular") {
    place = b.Where(b.Op("greater_equal", {place, length}), b.Sub(place, length), place);
  } else if (mode != "linear") {
    return n.Error(fmt::format("mode is \"{}\"; it must be linear or circular", mode));
  }
  const Value negative = b.Op("less", {place, b.Scalar(DType::kI64, 0)});
  return b.Where(negative, length, b.Op("minimum", {place, length}));
}

}  // namespace

// Rows of `inner` numbers go to row (sample * middle + m) * length + place.
Status ConvertTensorScatter(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(const Cache c, ViewCache(n));
  RIDGE_ASSIGN_OR_RETURN(const Value place, StepPlaces(n, c));
  const int64_t lines = c.batch * c.middle;
  RIDGE_ASSIGN_OR_RETURN(const Value numbers, OnnxIota(n, lines));
  GraphBuilder& b = n.b();
  const Value line = ReshapeExactly(b, numbers, {c.batch, c.middle, 1});
  const Value place3 = ReshapeExactly(b, place, {c.batch, 1, c.steps});
  const Value length = b.Scalar(DType::kI64, static_cast<double>(c.length));
  const Value nowhere =
      b.Scalar(DType::kI64, static_cast<double>(lines) * static_cast<double>(c.length));
  const Value row =
      b.Where(b.Op("less", {place3, length}), b.Add(b.Mul(line, length), place3), nowhere);
  const Value y =
      b.Op("scatter", {ReshapeExactly(b, n.input(0), {lines * c.length, c.inner}), OnnxFlat(b, row),
                       ReshapeExactly(b, n.input(1), {lines * c.steps, c.inner})});
  n.Set(0, ReshapeExactly(b, y, n.dims(0)));
  return n.status();
}

}  // namespace ridge
