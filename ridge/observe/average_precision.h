// AveragePrecision: how well detected boxes match true ones, as the evaluation of COCO has it.
//
//   AP(class, t) = mean over recalls 0, 0.01 .. 1 of the best precision at that recall or above,
//   where a box hits when its IoU with a true box of its class, not yet taken, is at least t
//   mAP50 = mean over classes of AP(class, 0.5)
//   mAP50-95 = mean over classes and t = 0.5, 0.55 .. 0.95
// over the classes that have a true box; all areas, 100 boxes of a class and picture.  A crowd is
// no true box; boxes that hit only a crowd count neither way.  Values are those of pycocotools 2.0.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ridge/observe/detected_boxes.h"
#include "ridge/observe/packed_numbers.h"

namespace ridge {

struct TrueBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  int64_t label = 0;
  bool crowd = false;
};

class AveragePrecision {
 public:
  static constexpr size_t kThresholds = 10;
  static constexpr int64_t kMostOfClass = 100;  // boxes of a class and picture

  // REQUIRES: classes >= 1.
  explicit AveragePrecision(int64_t classes);

  // Host memory after so many pictures, `most` boxes each.
  static int64_t Bytes(int64_t pictures, int64_t most);

  // A picture.  Ties of scores are taken in the order of `found` and of the calls.  Labels that are
  // no class are left out.
  void Add(std::span<const DetectedBox> found, std::span<const TrueBox> truth);

  // Of samples that another rank counted: adds what its Pack() gave.
  void Pack(PackedNumbers& to) const;
  void Merge(NumberReader& from);

  int64_t classes() const { return static_cast<int64_t>(of_class_.size()); }
  int64_t Support(int64_t c) const { return At(c).support; }  // true boxes

  // Nothing for a class without true boxes.
  std::optional<double> Ap50(int64_t c) const;
  std::optional<double> Ap50To95(int64_t c) const;
  // Nothing without true boxes.
  std::optional<double> Map50() const;
  std::optional<double> Map50To95() const;

 private:
  struct Found {
    double score = 0;
    uint16_t hits = 0;     // a bit a threshold
    uint16_t ignored = 0;  // likewise: hits a crowd alone
  };
  struct OfClass {
    int64_t support = 0;
    std::vector<Found> found;
  };
  using Precisions = std::array<double, kThresholds>;

  const OfClass& At(int64_t c) const { return of_class_[static_cast<size_t>(c)]; }
  void AddClass(int64_t c, std::span<const DetectedBox> found, std::span<const TrueBox> truth);
  // REQUIRES: Support(c) > 0.
  Precisions OfThresholds(int64_t c) const;
  using Metric = std::optional<double> (AveragePrecision::*)(int64_t c) const;
  std::optional<double> MeanOf(Metric metric) const;

  std::vector<OfClass> of_class_;
};

}  // namespace ridge
