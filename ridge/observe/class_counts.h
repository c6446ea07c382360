// ClassCounts: what an evaluation counts of a classifier, and the metrics that follow from it.
//
//   precision = hits / said        recall = hits / support        F1 = 2 hits / (support + said)
//   macro F1  = mean F1 over the classes with support + said > 0
//   IoU = hits / (support + said - hits), and its mean over the same classes; of pixels F1 is Dice
// as scikit-learn defines them (metrics.precision_recall_fscore_support; its macro average is over
// the labels in y_true or y_pred), except that a ratio with divisor 0 is no number here, and 0
// there.  Counts are whole numbers, so no order of the samples changes a metric.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ridge/observe/packed_numbers.h"

namespace ridge {

// A sample whose largest logit is not its label's.
struct WrongSample {
  int64_t index = 0;  // in the source
  int64_t label = 0;
  int64_t said = 0;
  double probability = 0;  // softmax of `said`; 0 when a logit is not finite
};

class ClassCounts {
 public:
  static constexpr int64_t kMostMatrixClasses = 1024;  // with more there is no confusion matrix
  static constexpr size_t kMostWrong = 20;

  // REQUIRES: classes >= 1.
  explicit ClassCounts(int64_t classes);
  static int64_t Bytes(int64_t classes);  // of host memory

  // Counts a sample by its logits, one a class; a label that is no class is left out.  The first of
  // equal logits is the largest; a NaN is larger than any number.  Allocates nothing.
  void Add(int64_t index, int64_t label, std::span<const double> logits);

  // Counts a label, such as a pixel's, by the class that was said.  Allocates nothing.
  // REQUIRES: 0 <= said < classes.
  void AddSaid(int64_t label, int64_t said);

  // Of samples that another rank counted: adds what its Pack() gave.
  void Pack(PackedNumbers& to) const;
  void Merge(NumberReader& from);

  int64_t classes() const { return classes_; }
  int64_t samples() const { return samples_; }
  int64_t hits() const { return hits_; }
  int64_t Support(int64_t c) const { return support_[static_cast<size_t>(c)]; }
  int64_t Said(int64_t c) const { return said_[static_cast<size_t>(c)]; }
  int64_t Hits(int64_t c) const { return class_hits_[static_cast<size_t>(c)]; }
  // [label][said], row-major; empty above kMostMatrixClasses.
  const std::vector<int64_t>& matrix() const { return matrix_; }

  // Nothing where it is no number.
  std::optional<double> Accuracy() const;
  std::optional<double> TopFive() const;  // share of labels among the 5 largest; with > 5 classes
  std::optional<double> Precision(int64_t c) const;
  std::optional<double> Recall(int64_t c) const;
  std::optional<double> F1(int64_t c) const;
  std::optional<double> MacroF1() const;
  std::optional<double> Iou(int64_t c) const;
  std::optional<double> MeanIou() const;

  // Those with the greatest probability, at most kMostWrong, greatest first.
  const std::vector<WrongSample>& wrong() const { return wrong_; }

 private:
  using OfClass = std::optional<double> (ClassCounts::*)(int64_t c) const;
  std::optional<double> MeanOf(OfClass metric) const;
  void Keep(const WrongSample& sample);

  int64_t classes_;
  int64_t samples_ = 0, hits_ = 0, top_five_ = 0;
  std::vector<int64_t> support_, said_, class_hits_, matrix_;
  std::vector<WrongSample> wrong_;
};

}  // namespace ridge
