// ONNX converters whose output shapes depend on data: NonZero, Unique, Compress, NonMaxSuppression.
// What decides the shape must be known before planning; it is evaluated here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/onnx/import/converters/index.h"

namespace ridge {

Result<Tensor> OnnxConstantTensor(OnnxNode& n, size_t i, const char* what) {
  constexpr int64_t kMost = int64_t{1} << 22;
  const Tensor* known = n.ConstantInput(i);
  if (known != nullptr && known->elements() <= kMost) return *known;
  return n.Unsupported(
      fmt::format("{} (input {}) {}", what, i,
                  known == nullptr
                      ? "depends on data; it must be known before planning, for the output's shape "
                        "depends on it"
                      : "has more than 2^22 elements"));
}

namespace {

Value Indices(GraphBuilder& b, const std::vector<int64_t>& list) {
  return b.Constant(Tensor::FromInts({static_cast<int64_t>(list.size())}, list), "indices");
}

}  // namespace

// [rank, count]: the coordinates of the elements that are not 0, in order.
Result<Value> ConvertNonZero(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Tensor x, OnnxConstantTensor(n, 0, "X"));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (x.at(i) != 0) places.push_back(i);
  }
  const Dims dims = x.type().dims, strides = RowMajorStrides(dims);
  const auto count = static_cast<int64_t>(places.size());
  std::vector<int64_t> coordinates;
  for (size_t d = 0; d < dims.size(); ++d) {
    for (int64_t place : places) coordinates.push_back(place / strides[d] % dims[d]);
  }
  return n.b().Constant(Tensor::FromInts({static_cast<int64_t>(dims.size()), count}, coordinates),
                        "nonzero");
}

// Takes the slices (or elements, without an axis) where the condition holds.
Result<Value> ConvertCompress(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Tensor condition, OnnxConstantTensor(n, 1, "condition"));
  GraphBuilder& b = n.b();
  Value x = n[0];
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(n.integer("axis", 0), static_cast<int>(n.dims(0).size())));
  } else {
    x = OnnxFlat(x);
  }
  if (!n.ok()) return n.status();
  const int64_t extent = x.dims()[static_cast<size_t>(axis)];
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < condition.elements(); ++i) {
    if (condition.at(i) == 0) continue;
    if (i >= extent) {
      return n.Error(fmt::format("condition takes element {} of {}", i, extent));
    }
    taken.push_back(i);
  }
  return Gather(x, Indices(b, taken), axis);
}

namespace {

// The slices of a tensor along one axis, to be compared with each other: exactly, so that large
// integers differ; NaN is largest, and equal to itself.
class Slices {
 public:
  Slices(const Tensor& x, const AxisView& view) : view_(view) {
    const bool wide = x.type().dtype == DType::kI64;
    for (int64_t i = 0; i < x.elements(); ++i)
      values_.push_back(wide ? static_cast<long double>(x.as<int64_t>()[i]) : x.at(i));
  }
  int64_t count() const { return view_.extent; }
  // < 0, 0, > 0
  int Compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < view_.outer; ++o) {
      for (int64_t i = 0; i < view_.inner; ++i) {
        const long double p = At(o, a, i), q = At(o, b, i);
        if (std::isnan(p) != std::isnan(q)) return std::isnan(p) ? 1 : -1;
        if (p < q) return -1;
        if (p > q) return 1;
      }
    }
    return 0;
  }

 private:
  long double At(int64_t o, int64_t k, int64_t i) const {
    return values_[static_cast<size_t>(view_.Index(o, k, i))];
  }
  AxisView view_;
  std::vector<long double> values_;
};

struct UniqueSlices {
  std::vector<int64_t> first;    // where each kind occurs first
  std::vector<int64_t> kind_of;  // for each slice
  std::vector<int64_t> counts;
};

// Kinds in the order of their values, or of where they occur first.
UniqueSlices FindUnique(const Slices& slices, bool sorted) {
  std::vector<int64_t> order(static_cast<size_t>(slices.count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return slices.Compare(a, b) < 0; });
  std::vector<int64_t> leader(order.size());  // for each slice, the first of its kind
  std::vector<int64_t> leaders;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && slices.Compare(order[i], order[i - 1]) == 0;
    if (!same) leaders.push_back(order[i]);
    leader[static_cast<size_t>(order[i])] = leaders.back();
  }
  if (!sorted) std::sort(leaders.begin(), leaders.end());
  UniqueSlices unique{leaders, {}, std::vector<int64_t>(leaders.size(), 0)};
  std::vector<int64_t> kind(order.size());
  for (size_t k = 0; k < leaders.size(); ++k)
    kind[static_cast<size_t>(leaders[k])] = static_cast<int64_t>(k);
  for (int64_t first : leader) {
    unique.kind_of.push_back(kind[static_cast<size_t>(first)]);
    ++unique.counts[static_cast<size_t>(unique.kind_of.back())];
  }
  return unique;
}

}  // namespace

Status ConvertUnique(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Tensor x, OnnxConstantTensor(n, 0, "X"));
  const Dims dims = x.type().dims;
  GraphBuilder& b = n.b();
  Value value = n[0];
  AxisView view{1, x.elements(), 1};
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(n.integer("axis", 0), static_cast<int>(dims.size())));
    view = ViewAxis(dims, static_cast<int>(axis));
  } else {
    value = OnnxFlat(value);
  }
  if (view.extent > x.elements()) {  // slices without elements are all one
    return n.Unsupported(fmt::format("X is {}, empty", DimsToString(dims)));
  }
  const UniqueSlices unique = FindUnique(Slices(x, view), n.integer("sorted", 1) != 0);
  n.Set(0, Gather(value, Indices(b, unique.first), axis));
  n.Set(1, Indices(b, unique.first));
  n.Set(2, Indices(b, unique.kind_of));
  n.Set(3, Indices(b, unique.counts));
  return n.status();
}

namespace {

// In f32, as the file's numbers are.
struct Box {
  float x0, y0, x1, y1;
  float area() const { return (x1 - x0) * (y1 - y0); }
};

Box ReadBox(const Tensor& boxes, int64_t at, bool center) {
  float v[4];
  for (int64_t i = 0; i < 4; ++i) v[i] = static_cast<float>(boxes.at(at * 4 + i));
  if (center) return {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
  return {std::min(v[1], v[3]), std::min(v[0], v[2]), std::max(v[1], v[3]), std::max(v[0], v[2])};
}

bool Overlap(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(width > 0) || !(height > 0)) return false;
  const float common = width * height, whole = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && whole > 0 && common / whole > threshold;
}

struct NmsOptions {
  Tensor boxes, scores;  // (B, N, 4), (B, C, N)
  int64_t most = 0;
  float iou = 0, score = -INFINITY;
  bool center = false;
};

Result<NmsOptions> ReadNms(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  NmsOptions o;
  RIDGE_ASSIGN_OR_RETURN(o.boxes, OnnxConstantTensor(n, 0, "boxes"));
  RIDGE_ASSIGN_OR_RETURN(o.scores, OnnxConstantTensor(n, 1, "scores"));
  const Dims boxes = o.boxes.type().dims, scores = o.scores.type().dims;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2]) {
    return n.Error(fmt::format("boxes is {}, scores is {}; they must be [B,N,4] and [B,C,N]",
                               DimsToString(boxes), DimsToString(scores)));
  }
  if (n.has_input(2)) {
    RIDGE_ASSIGN_OR_RETURN(o.most, n.ConstantInt(2, "max_output_boxes_per_class"));
  }
  if (n.has_input(3)) {
    RIDGE_ASSIGN_OR_RETURN(const double iou, n.ConstantNumber(3, "iou_threshold"));
    o.iou = static_cast<float>(iou);
  }
  if (n.has_input(4)) {
    RIDGE_ASSIGN_OR_RETURN(const double score, n.ConstantNumber(4, "score_threshold"));
    o.score = static_cast<float>(score);
  }
  o.center = n.integer("center_point_box", 0) != 0;
  return o;
}

// The best boxes of one class, best first.  `tests` counts down what a file may cost us.
std::vector<int64_t> SelectBoxes(const NmsOptions& o, int64_t batch, int64_t row, int64_t& tests) {
  const int64_t count = o.boxes.type().dims[1];
  const auto score = [&](int64_t i) { return static_cast<float>(o.scores.at(row * count + i)); };
  std::vector<int64_t> order, selected;
  for (int64_t i = 0; i < count; ++i) {
    if (score(i) > o.score) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return score(a) > score(b); });
  std::vector<Box> kept;
  for (int64_t i : order) {
    if (static_cast<int64_t>(selected.size()) >= o.most || tests < 0) break;
    const Box box = ReadBox(o.boxes, batch * count + i, o.center);
    tests -= static_cast<int64_t>(kept.size()) + 1;
    const bool suppressed =
        std::any_of(kept.begin(), kept.end(), [&](const Box& k) { return Overlap(box, k, o.iou); });
    if (suppressed) continue;
    kept.push_back(box);
    selected.push_back(i);
  }
  return selected;
}

}  // namespace

Result<Value> ConvertNonMaxSuppression(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const NmsOptions o, ReadNms(n));
  const int64_t batches = o.scores.type().dims[0], classes = o.scores.type().dims[1];
  int64_t tests = int64_t{1} << 28;
  std::vector<int64_t> rows;
  for (int64_t row = 0; o.scores.elements() > 0 && row < batches * classes; ++row) {
    for (int64_t i : SelectBoxes(o, row / classes, row, tests))
      rows.insert(rows.end(), {row / classes, row % classes, i});
  }
  if (tests < 0) return n.Unsupported("compares more than 2^28 pairs of boxes");
  const auto count = static_cast<int64_t>(rows.size()) / 3;
  return n.b().Constant(Tensor::FromInts({count, 3}, rows), "selected");
}

}  // namespace ridge
