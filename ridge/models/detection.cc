// With t the target scores of assign_boxes, and w = sum over classes of t at each place:
//
//   loss = (7.5 sum((1 - CIoU) w) + 0.5 sum(BCE(logits, t)) + 1.5 sum(DFL w)) / max(1, sum(t))
//
// CIoU: Zheng et al., "Distance-IoU Loss", AAAI 2020.  DFL: Li et al., "Generalized Focal Loss",
// NeurIPS 2020: the cross entropy of the two bins beside the distance, by their nearness, as a mean
// over the four sides.  Factors are those of YOLOv8; its loss is this one times the batch.
#include "ridge/models/detection.h"

#include <fmt/format.h>

#include <numbers>

namespace ridge {
namespace {

constexpr double kBoxFactor = 7.5, kClassFactor = 0.5, kDistanceFactor = 1.5;

// Middles and strides of all places.
struct Places {
  Value anchors;  // [A,2], in cells
  Value strides;  // [A,1], in pixels
};

Places MakePlaces(GraphBuilder& b, DType dtype, const std::vector<DetectionMap>& maps) {
  std::vector<float> anchors, strides;
  for (const DetectionMap& map : maps) {
    const Dims dims = map.classes.dims();
    for (int64_t y = 0; y < dims[2]; ++y) {
      for (int64_t x = 0; x < dims[3]; ++x) {
        anchors.push_back(static_cast<float>(x) + 0.5F);
        anchors.push_back(static_cast<float>(y) + 0.5F);
        strides.push_back(static_cast<float>(map.stride));
      }
    }
  }
  const auto count = static_cast<int64_t>(strides.size());
  const Value points = b.Constant(Tensor::FromFloats({count, 2}, anchors), "anchors");
  const Value steps = b.Constant(Tensor::FromFloats({count, 1}, strides), "strides");
  const Value typed = Cast(points, dtype);
  return {typed, Cast(steps, dtype)};
}

// Maps [B,K,H,W] one after the other: [B,A,K].
Value JoinMaps(const std::vector<Value>& maps) {
  std::vector<Value> rows;
  for (const Value& map : maps) {
    if (!map.valid()) return {};
    const Dims dims = map.dims();
    rows.push_back(Reshape(map, {dims[0], dims[1], dims[2] * dims[3]}));
  }
  return Transpose(Concat(rows, 2), {0, 2, 1});
}

Value Bins(GraphBuilder& b, DType dtype) {
  std::vector<float> bins;
  for (int64_t i = 0; i < kDistanceBins; ++i) bins.push_back(static_cast<float>(i));
  return Cast(b.Constant(Tensor::FromFloats({kDistanceBins}, bins), "bins"), dtype);
}

struct Sides {
  Value x1, y1, x2, y2;  // [B,A,1] each
};
Sides SidesOf(Value boxes) {
  const Value x1 = Slice(boxes, 2, 0, 1), y1 = Slice(boxes, 2, 1, 2);
  const Value x2 = Slice(boxes, 2, 2, 3), y2 = Slice(boxes, 2, 3, 4);
  return {x1, y1, x2, y2};
}

constexpr double kIouEps = 1e-7;

struct BoxExtent {
  Value width, height;
};
BoxExtent ExtentOf(const Sides& s) {
  const Value width = s.x2 - s.x1;
  const Value height = s.y2 - s.y1;
  return {width, height + kIouEps};
}

Value SharedArea(const Sides& p, const Sides& t) {
  const Value right = Minimum(p.x2, t.x2), left = Maximum(p.x1, t.x1);
  const Value bottom = Minimum(p.y2, t.y2), top = Maximum(p.y1, t.y1);
  const Value width = Relu(right - left);
  const Value height = Relu(bottom - top);
  return width * height;
}

// Of the middles, over the diagonal of the box around both, squared.
Value CentreDistance(const Sides& p, const Sides& t) {
  const Value right = Maximum(p.x2, t.x2), left = Minimum(p.x1, t.x1);
  const Value bottom = Maximum(p.y2, t.y2), top = Minimum(p.y1, t.y1);
  const Value width = Square(right - left);
  const Value height = Square(bottom - top);
  const Value px = p.x1 + p.x2, py = p.y1 + p.y2;
  const Value tx = t.x1 + t.x2, ty = t.y1 + t.y2;
  const Value dx = Square(tx - px);
  const Value dy = Square(ty - py);
  const Value between = (dx + dy) / 4.0;
  return between / (width + height + kIouEps);
}

// p, t [B,A,4] -> [B,A,1].  The weight of the shapes' difference is a constant to the gradient.
Value CompleteIou(Value predicted, Value target) {
  const Sides p = SidesOf(predicted), t = SidesOf(target);
  const Value both = SharedArea(p, t);
  const BoxExtent ep = ExtentOf(p), et = ExtentOf(t);
  const Value p_area = ep.width * ep.height, t_area = et.width * et.height;
  const Value iou = both / (p_area + t_area - both + kIouEps);
  const Value p_angle = Op("atan", {ep.width / ep.height});
  const Value t_angle = Op("atan", {et.width / et.height});
  const Value shape = Square(t_angle - p_angle) * (4 / (std::numbers::pi * std::numbers::pi));
  const Value weight = Op("stop_gradient", {shape / (shape - iou + (1 + kIouEps))});
  const Value distance = CentreDistance(p, t);
  return iou - distance - shape * weight;
}

// logits [B,A,4,bins]; the cross entropy against target distances [B,A,4], as [B,A,1].
Value DistanceLoss(GraphBuilder& b, Value logits, Value target) {
  if (!b.ok()) return {};
  Dims dims = target.dims();
  dims.push_back(1);
  const Value inside = Clip(target, 0, static_cast<double>(kDistanceBins) - 1.01);
  // 1 - |distance| to the two bins beside, 0 to the others
  const Value near = Relu(1.0 - Abs(Reshape(inside, dims) - Bins(b, logits.dtype())));
  const Value losses = -Sum(LogSoftmax(logits) * near, {3});
  return Mean(losses, {2}, /*keep_dims=*/true);
}

struct Predictions {
  Value distance_logits;  // [B,A,4,bins]
  Value cells;            // [B,A,4], boxes in cells
  Value boxes;            // [B,A,4], in pixels
  Value logits;           // [B,A,C]
};

Predictions Decode(GraphBuilder& b, const Places& places, const std::vector<DetectionMap>& maps) {
  std::vector<Value> distances, classes;
  for (const DetectionMap& map : maps) {
    distances.push_back(map.distances);
    classes.push_back(map.classes);
  }
  Predictions p;
  const Value joined = JoinMaps(distances);
  p.logits = JoinMaps(classes);
  if (!b.ok()) return {};
  const Dims dims = joined.dims();
  p.distance_logits = Reshape(joined, {dims[0], dims[1], 4, kDistanceBins});
  const Value mean = Sum(Softmax(p.distance_logits) * Bins(b, joined.dtype()), {3});
  const Value first = places.anchors - Slice(mean, 2, 0, 2);
  const Value last = places.anchors + Slice(mean, 2, 2, 4);
  p.cells = Concat({first, last}, 2);
  p.boxes = p.cells * places.strides;
  return p;
}

Value DetectionLoss(GraphBuilder& b, const Places& places, const Predictions& p, Value true_boxes,
                    Value true_classes) {
  const Value scores = Sigmoid(p.logits);
  const Value pixels = places.anchors * places.strides;
  const std::vector<Value> targets =
      OpOutputs("assign_boxes", {scores, p.boxes, pixels, true_boxes, true_classes}, {}, "assign");
  if (!b.ok()) return {};
  const Value cells = targets[0] / places.strides;
  const Value weight = Sum(targets[1], {2}, /*keep_dims=*/true);
  const Value box = Sum((1.0 - CompleteIou(p.cells, cells)) * weight);
  const Value to_first = places.anchors - Slice(cells, 2, 0, 2);
  const Value to_last = Slice(cells, 2, 2, 4) - places.anchors;
  const Value distances = DistanceLoss(b, p.distance_logits, Concat({to_first, to_last}, 2));
  const Value distance = Sum(distances * weight);
  const Value hits = targets[1] * p.logits;
  const Value classes = Sum(Softplus(p.logits) - hits);
  const Value places_part = box * kBoxFactor + distance * kDistanceFactor;
  const Value all = places_part + classes * kClassFactor;
  const Value count = Maximum(Sum(targets[1]), ScalarLike(all, 1));
  return Op("div", {all, count}, {}, "loss");
}

}  // namespace

void DetectionEnd(GraphBuilder& b, const ModelOptions& options,
                  const std::vector<DetectionMap>& maps, int64_t most_boxes) {
  const Value boxes =
      b.Input("boxes", {options.dtype, {options.batch, most_boxes, 4}}, {"batch", "", ""});
  const Value classes =
      b.Input("classes", {DType::kI64, {options.batch, most_boxes}}, {"batch", ""});
  if (!b.ok()) return;
  const Places places = MakePlaces(b, options.dtype, maps);
  const Predictions p = Decode(b, places, maps);
  const Value loss = DetectionLoss(b, places, p, boxes, classes);
  const Value probabilities = Sigmoid(p.logits);
  b.Output("logits", p.logits);
  b.Output("detections", Concat({p.boxes, probabilities}, 2));
  b.Output("loss", loss);
}

}  // namespace ridge
