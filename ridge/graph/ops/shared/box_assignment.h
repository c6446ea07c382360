// BoxAssigner: task-aligned assignment of the true boxes of one picture to places of a detector
// (Feng et al., "TOOD: Task-aligned One-stage Object Detection", ICCV 2021, section 3.2).
//
//   overlap = max(0, complete IoU of the place's box and the true box)
//   metric  = score[class of the true box]^alpha * overlap^beta
//
// A true box takes the k best places among those whose anchor it contains; a place that several
// take goes to the box of largest overlap.  The target score of a place is its metric, scaled so
// that the best place of each true box has the largest overlap of its places.  Equal places are
// taken by index.  All in doubles, so that each element type selects the same places.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "ridge/graph/op_def.h"

namespace ridge {

// Left, top, right, bottom.
struct Box {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// Intersection over union, less the distance of the centres and the difference of the shapes
// (Zheng et al., "Enhancing Geometric Factors in Model Learning", 2020).
inline double CompleteIou(const Box& a, const Box& b) {
  constexpr double kEps = 1e-7;
  const double aw = a.x2 - a.x1, ah = a.y2 - a.y1 + kEps;
  const double bw = b.x2 - b.x1, bh = b.y2 - b.y1 + kEps;
  const double w = std::max(0.0, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const double h = std::max(0.0, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const double iou = w * h / (aw * ah + bw * bh - w * h + kEps);
  const double hull_w = std::max(a.x2, b.x2) - std::min(a.x1, b.x1);
  const double hull_h = std::max(a.y2, b.y2) - std::min(a.y1, b.y1);
  const double dx = b.x1 + b.x2 - a.x1 - a.x2, dy = b.y1 + b.y2 - a.y1 - a.y2;
  const double distance = (dx * dx + dy * dy) / 4 / (hull_w * hull_w + hull_h * hull_h + kEps);
  const double turn = std::atan(bw / bh) - std::atan(aw / ah);
  const double shape = 4 / (std::numbers::pi * std::numbers::pi) * turn * turn;
  return iou - distance - shape * shape / (shape - iou + 1 + kEps);
}

struct AssignmentSizes {
  int64_t places = 0, classes = 0, truths = 0;  // A, C, N
  int64_t k = 0;
  double alpha = 0, beta = 0;

  explicit AssignmentSizes(const OpCall& call)
      : places(call.inputs[0].dims[1]),
        classes(call.inputs[0].dims[2]),
        truths(call.inputs[3].dims[1]),
        k(std::min(call.integer("k"), places)),
        alpha(call.number("alpha")),
        beta(call.number("beta")) {}

  // Of one picture: the true box and metric of each place, the best k, and two maxima a true box.
  int64_t workspace_numbers() const { return 2 * places + 2 * k + 2 * truths; }
};

// T: the element of floats; Index: of classes.
template <typename T, typename Index>
class BoxAssigner {
 public:
  BoxAssigner(const AssignmentSizes& sizes, const T* anchors, std::span<double> workspace)
      : s_(sizes),
        anchors_(anchors),
        owner_(workspace.data()),
        metric_(owner_ + s_.places),
        best_(metric_ + s_.places),
        best_place_(best_ + s_.k),
        most_metric_(best_place_ + s_.k),
        most_overlap_(most_metric_ + s_.truths) {}

  // scores (A, C), boxes (A, 4), truths (N, 4), classes (N): outputs (A, 4) and (A, C).
  void Run(const T* scores, const T* boxes, const T* truths, const Index* classes, T* target_boxes,
           T* target_scores) {
    scores_ = scores, boxes_ = boxes, truths_ = truths, classes_ = classes;
    std::fill_n(owner_, s_.places, kNobody);
    for (int64_t n = 0; n < s_.truths; ++n) TakeBest(n);
    SettleConflicts();
    FindMaxima();
    WriteTargets(target_boxes, target_scores);
  }

 private:
  static constexpr double kNobody = -1, kSeveral = -2;

  static Box BoxAt(const T* boxes, int64_t i) {
    const T* p = boxes + 4 * i;
    return {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2]),
            static_cast<double>(p[3])};
  }

  bool Counts(int64_t n) const {
    const auto c = static_cast<double>(classes_[n]);
    return c >= 0 && c < static_cast<double>(s_.classes);
  }
  bool Contains(const Box& truth, int64_t place) const {
    constexpr double kEps = 1e-9;
    const auto x = static_cast<double>(anchors_[2 * place]);
    const auto y = static_cast<double>(anchors_[2 * place + 1]);
    return std::min({x - truth.x1, y - truth.y1, truth.x2 - x, truth.y2 - y}) > kEps;
  }
  double Overlap(int64_t n, int64_t place) const {
    const double iou = CompleteIou(BoxAt(truths_, n), BoxAt(boxes_, place));
    return iou > 0 ? iou : 0;  // also for NaN
  }
  double Metric(int64_t n, int64_t place, double overlap) const {
    const auto c = static_cast<int64_t>(classes_[n]);
    const auto score = static_cast<double>(scores_[place * s_.classes + c]);
    const double metric = std::pow(score, s_.alpha) * std::pow(overlap, s_.beta);
    return metric > 0 ? metric : 0;
  }

  // The k best places of true box n, by insertion: k is small.
  void TakeBest(int64_t n) {
    if (!Counts(n)) return;
    const Box truth = BoxAt(truths_, n);
    int64_t count = 0;
    for (int64_t place = 0; place < s_.places; ++place) {
      if (Contains(truth, place)) Insert(place, Metric(n, place, Overlap(n, place)), count);
    }
    for (int64_t i = 0; i < count; ++i) {
      double& owner = owner_[static_cast<int64_t>(best_place_[i])];
      owner = owner == kNobody ? static_cast<double>(n) : kSeveral;
    }
  }

  void Insert(int64_t place, double metric, int64_t& count) {
    int64_t at = count;
    while (at > 0 && best_[at - 1] < metric) --at;
    if (at == s_.k) return;
    count = std::min(count + 1, s_.k);
    std::copy_backward(best_ + at, best_ + count - 1, best_ + count);
    std::copy_backward(best_place_ + at, best_place_ + count - 1, best_place_ + count);
    best_[at] = metric;
    best_place_[at] = static_cast<double>(place);
  }

  void SettleConflicts() {
    for (int64_t place = 0; place < s_.places; ++place) {
      if (owner_[place] != kSeveral) continue;
      double most = -1;
      for (int64_t n = 0; n < s_.truths; ++n) {
        if (!Counts(n) || !Contains(BoxAt(truths_, n), place)) continue;
        const double overlap = Overlap(n, place);
        if (overlap <= most) continue;
        most = overlap;
        owner_[place] = static_cast<double>(n);
      }
    }
  }

  void FindMaxima() {
    std::fill_n(most_metric_, 2 * s_.truths, 0.0);
    for (int64_t place = 0; place < s_.places; ++place) {
      if (owner_[place] < 0) continue;
      const auto n = static_cast<int64_t>(owner_[place]);
      const double overlap = Overlap(n, place);
      metric_[place] = Metric(n, place, overlap);
      most_metric_[n] = std::max(most_metric_[n], metric_[place]);
      most_overlap_[n] = std::max(most_overlap_[n], overlap);
    }
  }

  void WriteTargets(T* target_boxes, T* target_scores) const {
    constexpr double kEps = 1e-9;
    std::fill_n(target_boxes, 4 * s_.places, T{0});
    std::fill_n(target_scores, s_.places * s_.classes, T{0});
    for (int64_t place = 0; place < s_.places; ++place) {
      if (owner_[place] < 0) continue;
      const auto n = static_cast<int64_t>(owner_[place]);
      std::copy_n(truths_ + 4 * n, 4, target_boxes + 4 * place);
      const double score = metric_[place] * most_overlap_[n] / (most_metric_[n] + kEps);
      target_scores[place * s_.classes + static_cast<int64_t>(classes_[n])] = static_cast<T>(score);
    }
  }

  const AssignmentSizes s_;
  const T* anchors_;
  double* owner_;  // by place: its true box, kNobody or kSeveral
  double* metric_;
  double* best_;  // of one true box, best first
  double* best_place_;
  double* most_metric_;  // by true box
  double* most_overlap_;
  const T* scores_ = nullptr;
  const T* boxes_ = nullptr;
  const T* truths_ = nullptr;
  const Index* classes_ = nullptr;
};

}  // namespace ridge
