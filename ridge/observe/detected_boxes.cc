// Candidates are a heap of bounded size, worst on top, so memory does not grow with classes.
// Suppression is greedy (torchvision.ops.nms): best first, each against the kept ones of its class.
#include "ridge/observe/detected_boxes.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace ridge {
namespace {

constexpr size_t kSides = 4;

// A total order but for equal boxes.
bool IsBetter(const DetectedBox& a, const DetectedBox& b) {
  if (a.score != b.score) return a.score > b.score;
  return std::tie(a.label, a.x1, a.y1, a.x2, a.y2) < std::tie(b.label, b.x1, b.y1, b.x2, b.y2);
}

bool IsFinite(const DetectedBox& box) {
  return std::isfinite(box.x1) && std::isfinite(box.y1) && std::isfinite(box.x2) &&
         std::isfinite(box.y2) && std::isfinite(box.score);
}

// The best kMostCandidates of those offered.
class Candidates {
 public:
  explicit Candidates(double least_score) : least_score_(least_score) {}

  void Offer(const DetectedBox& box) {
    if (!(box.score > least_score_) || !IsFinite(box)) return;
    boxes_.push_back(box);
    std::push_heap(boxes_.begin(), boxes_.end(), IsBetter);
    if (static_cast<int64_t>(boxes_.size()) <= kMostCandidates) return;
    std::pop_heap(boxes_.begin(), boxes_.end(), IsBetter);
    boxes_.pop_back();
  }
  std::vector<DetectedBox> Take() { return std::move(boxes_); }

 private:
  double least_score_;
  std::vector<DetectedBox> boxes_;
};

// The first of equal scores; a NaN is none.
size_t BestClass(std::span<const double> scores) {
  size_t best = 0;
  for (size_t c = 1; c < scores.size(); ++c) {
    if (scores[c] > scores[best] || std::isnan(scores[best])) best = c;
  }
  return best;
}

void OfferPlace(std::span<const double> place, bool every_class, Candidates& candidates) {
  const std::span<const double> scores = place.subspan(kSides);
  const auto offer = [&](size_t c) {
    candidates.Offer({place[0], place[1], place[2], place[3], scores[c], static_cast<int64_t>(c)});
  };
  if (!every_class) return offer(BestClass(scores));
  for (size_t c = 0; c < scores.size(); ++c) offer(c);
}

}  // namespace

double Area(const DetectedBox& box) { return (box.x2 - box.x1) * (box.y2 - box.y1); }

double Overlap(const DetectedBox& a, const DetectedBox& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  return both / (Area(a) + Area(b) - both);
}

std::vector<DetectedBox> SuppressOverlaps(std::vector<DetectedBox> boxes,
                                          const DetectionLimits& limits) {
  std::sort(boxes.begin(), boxes.end(), IsBetter);
  std::vector<DetectedBox> kept;
  for (const DetectedBox& box : boxes) {
    if (static_cast<int64_t>(kept.size()) >= limits.most) break;
    const bool dropped = std::any_of(kept.begin(), kept.end(), [&](const DetectedBox& better) {
      return better.label == box.label && Overlap(better, box) > limits.overlap;
    });
    if (!dropped) kept.push_back(box);
  }
  return kept;
}

int64_t DetectionBytes(int64_t places, int64_t classes) {
  constexpr int64_t kGrowth = 3;  // a vector that moves holds its old and its doubled bytes
  const int64_t candidates = std::min(kMostCandidates + 1, places * classes);
  return places * (4 + classes) * int64_t{sizeof(double)} +
         kGrowth * candidates * int64_t{sizeof(DetectedBox)};
}

std::vector<DetectedBox> DetectBoxes(std::span<const double> answers, int64_t classes,
                                     const DetectionLimits& limits) {
  const size_t width = kSides + static_cast<size_t>(classes);
  Candidates candidates(limits.score);
  for (size_t at = 0; at + width <= answers.size(); at += width)
    OfferPlace(answers.subspan(at, width), limits.every_class, candidates);
  return SuppressOverlaps(candidates.Take(), limits);
}

DetectedBox InPicture(const DetectedBox& box, const PictureFrame& frame) {
  const auto x = [&](double at) {
    return std::clamp((at - frame.left) / frame.scale_x, 0.0, frame.width);
  };
  const auto y = [&](double at) {
    return std::clamp((at - frame.top) / frame.scale_y, 0.0, frame.height);
  };
  return {x(box.x1), y(box.y1), x(box.x2), y(box.y2), box.score, box.label};
}

}  // namespace ridge
