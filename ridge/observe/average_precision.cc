// Follows COCOeval.evaluateImg and accumulate (cocoapi, pycocotools/cocoeval.py): greedy matching
// by score, which prefers a true box to a crowd; a crowd takes any number of boxes, and the overlap
// with it is over the box's own area.
#include "ridge/observe/average_precision.h"

#include <algorithm>
#include <limits>

namespace ridge {
namespace {

constexpr int kRecalls = 101;

// 0.5, 0.55 .. 0.95, with numpy.linspace's bits.
double ThresholdAt(size_t i) {
  if (i + 1 == AveragePrecision::kThresholds) return 0.95;
  return 0.5 + static_cast<double>(i) * ((0.95 - 0.5) / 9);
}
double RecallAt(int i) { return i + 1 == kRecalls ? 1.0 : i * 0.01; }

double OverlapWith(const DetectedBox& box, const TrueBox& truth) {
  const DetectedBox other = {truth.x1, truth.y1, truth.x2, truth.y2, 0, 0};
  if (!truth.crowd) return Overlap(box, other);
  const double width = std::min(box.x2, truth.x2) - std::max(box.x1, truth.x1);
  const double height = std::min(box.y2, truth.y2) - std::max(box.y1, truth.y1);
  return width <= 0 || height <= 0 ? 0 : width * height / Area(box);
}

// Matches the boxes of a class and picture at one threshold, best box first.
class Matcher {
 public:
  Matcher(std::span<const TrueBox> truth, double threshold)
      : truth_(truth), taken_(truth.size()), least_(threshold) {}

  // The true box that `box` takes; crowds stand behind all others.  None: nullptr.
  const TrueBox* Take(const DetectedBox& box) {
    double best = least_;
    size_t match = truth_.size();
    for (size_t i = 0; i < truth_.size(); ++i) {
      if (taken_[i] && !truth_[i].crowd) continue;
      if (match < truth_.size() && !truth_[match].crowd && truth_[i].crowd) break;
      const double overlap = OverlapWith(box, truth_[i]);
      if (overlap < best) continue;
      best = overlap;
      match = i;
    }
    if (match == truth_.size()) return nullptr;
    taken_[match] = true;
    return &truth_[match];
  }

 private:
  std::span<const TrueBox> truth_;
  std::vector<bool> taken_;
  double least_;
};

struct Curve {
  std::vector<double> recall, precision;
};

// The best precision at each recall or above it, averaged over kRecalls recalls.
double MeanPrecision(Curve curve) {
  for (size_t i = curve.precision.size(); i-- > 1;)
    curve.precision[i - 1] = std::max(curve.precision[i - 1], curve.precision[i]);
  double sum = 0;
  for (int r = 0; r < kRecalls; ++r) {
    const auto at = std::lower_bound(curve.recall.begin(), curve.recall.end(), RecallAt(r));
    if (at == curve.recall.end()) break;
    sum += curve.precision[static_cast<size_t>(at - curve.recall.begin())];
  }
  return sum / kRecalls;
}

}  // namespace

AveragePrecision::AveragePrecision(int64_t classes) : of_class_(static_cast<size_t>(classes)) {}

int64_t AveragePrecision::Bytes(int64_t pictures, int64_t most) {
  constexpr int64_t kGrowth = 3;  // a vector that moves holds its old and its doubled bytes
  return kGrowth * pictures * most * int64_t{sizeof(Found)};
}

void AveragePrecision::Add(std::span<const DetectedBox> found, std::span<const TrueBox> truth) {
  for (int64_t c = 0; c < classes(); ++c) {
    std::vector<DetectedBox> boxes;
    std::vector<TrueBox> targets;
    const auto own = [c](const auto& box) { return box.label == c; };
    std::copy_if(found.begin(), found.end(), std::back_inserter(boxes), own);
    std::copy_if(truth.begin(), truth.end(), std::back_inserter(targets), own);
    if (!boxes.empty() || !targets.empty()) AddClass(c, boxes, targets);
  }
}

void AveragePrecision::AddClass(int64_t c, std::span<const DetectedBox> found,
                                std::span<const TrueBox> truth) {
  std::vector<DetectedBox> boxes(found.begin(), found.end());
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  if (boxes.size() > kMostOfClass) boxes.resize(kMostOfClass);
  std::vector<TrueBox> targets(truth.begin(), truth.end());
  const auto crowds = std::stable_partition(targets.begin(), targets.end(),
                                            [](const TrueBox& box) { return !box.crowd; });
  OfClass& of_class = of_class_[static_cast<size_t>(c)];
  of_class.support += crowds - targets.begin();
  const size_t first = of_class.found.size();
  for (const DetectedBox& box : boxes) of_class.found.push_back({box.score, 0, 0});
  for (size_t t = 0; t < kThresholds; ++t) {
    Matcher matcher(targets, ThresholdAt(t));
    for (size_t i = 0; i < boxes.size(); ++i) {
      const TrueBox* match = matcher.Take(boxes[i]);
      if (match == nullptr) continue;
      Found& record = of_class.found[first + i];
      uint16_t& bits = match->crowd ? record.ignored : record.hits;
      bits = static_cast<uint16_t>(bits | (1U << t));
    }
  }
}

AveragePrecision::Precisions AveragePrecision::OfThresholds(int64_t c) const {
  std::vector<Found> found = At(c).found;
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.score > b.score; });
  Precisions precisions;
  for (size_t t = 0; t < kThresholds; ++t) {
    Curve curve;
    double hits = 0, misses = 0;
    for (const Found& box : found) {
      const bool hit = (box.hits >> t & 1U) != 0, ignored = (box.ignored >> t & 1U) != 0;
      hits += hit;
      misses += !hit && !ignored;
      curve.recall.push_back(hits / static_cast<double>(Support(c)));
      curve.precision.push_back(hits / (hits + misses + std::numeric_limits<double>::epsilon()));
    }
    precisions[t] = MeanPrecision(std::move(curve));
  }
  return precisions;
}

std::optional<double> AveragePrecision::Ap50(int64_t c) const {
  if (Support(c) == 0) return std::nullopt;
  return OfThresholds(c)[0];
}

std::optional<double> AveragePrecision::Ap50To95(int64_t c) const {
  if (Support(c) == 0) return std::nullopt;
  double sum = 0;
  for (const double precision : OfThresholds(c)) sum += precision;
  return sum / kThresholds;
}

std::optional<double> AveragePrecision::MeanOf(Metric metric) const {
  double sum = 0;
  int64_t seen = 0;
  for (int64_t c = 0; c < classes(); ++c) {
    const std::optional<double> of_class = (this->*metric)(c);
    if (!of_class) continue;
    sum += *of_class;
    ++seen;
  }
  if (seen == 0) return std::nullopt;
  return sum / static_cast<double>(seen);
}

std::optional<double> AveragePrecision::Map50() const { return MeanOf(&AveragePrecision::Ap50); }
std::optional<double> AveragePrecision::Map50To95() const {
  return MeanOf(&AveragePrecision::Ap50To95);
}

void AveragePrecision::Pack(PackedNumbers& to) const {
  for (const OfClass& of : of_class_) {
    PackAll<int64_t>({of.support, static_cast<int64_t>(of.found.size())}, to);
    for (const Found& found : of.found)
      PackAll<double>(
          {found.score, static_cast<double>(found.hits), static_cast<double>(found.ignored)}, to);
  }
}

void AveragePrecision::Merge(NumberReader& from) {
  for (OfClass& of : of_class_) {
    of.support += from.TakeCount();
    for (int64_t left = from.TakeCount(); left > 0; --left) {
      Found found;
      found.score = from.Take();
      found.hits = static_cast<uint16_t>(from.TakeCount());
      found.ignored = static_cast<uint16_t>(from.TakeCount());
      of.found.push_back(found);
    }
  }
}

}  // namespace ridge
