#include "ridge/observe/class_counts.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

std::optional<double> Ratio(int64_t part, int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

// As argmax orders logits.
bool IsLarger(double x, double than) { return x > than || (std::isnan(x) && !std::isnan(than)); }

// Of the largest logit.
double Softmax(std::span<const double> logits, double largest) {
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  return std::isfinite(sum) ? 1 / sum : 0;
}

bool MoreConfident(const WrongSample& a, const WrongSample& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.index < b.index;
}

}  // namespace

ClassCounts::ClassCounts(int64_t classes) : classes_(classes) {
  const auto n = static_cast<size_t>(classes);
  for (std::vector<int64_t>* counts : {&support_, &said_, &class_hits_}) counts->resize(n);
  if (classes <= kMostMatrixClasses) matrix_.resize(n * n);
  wrong_.reserve(kMostWrong + 1);
}

int64_t ClassCounts::Bytes(int64_t classes) {
  const int64_t cells = classes <= kMostMatrixClasses ? classes * classes : 0;
  return (3 * classes + cells) * static_cast<int64_t>(sizeof(int64_t));
}

void ClassCounts::Add(int64_t index, int64_t label, std::span<const double> logits) {
  if (label < 0 || label >= classes_) return;
  const double own = logits[static_cast<size_t>(label)];
  int64_t said = 0, above = 0;  // logits that argmax would take before the label's
  for (int64_t c = 0; c < classes_; ++c) {
    const double x = logits[static_cast<size_t>(c)];
    if (IsLarger(x, logits[static_cast<size_t>(said)])) said = c;
    if (IsLarger(x, own) || (c < label && !IsLarger(own, x))) ++above;
  }
  if (above < 5) ++top_five_;
  AddSaid(label, said);
  if (said != label) Keep({index, label, said, Softmax(logits, logits[static_cast<size_t>(said)])});
}

void ClassCounts::AddSaid(int64_t label, int64_t said) {
  if (label < 0 || label >= classes_) return;
  ++samples_;
  ++support_[static_cast<size_t>(label)];
  ++said_[static_cast<size_t>(said)];
  if (!matrix_.empty()) ++matrix_[static_cast<size_t>(label * classes_ + said)];
  if (said != label) return;
  ++hits_;
  ++class_hits_[static_cast<size_t>(label)];
}

void ClassCounts::Keep(const WrongSample& sample) {
  const auto at = std::upper_bound(wrong_.begin(), wrong_.end(), sample, MoreConfident);
  wrong_.insert(at, sample);
  if (wrong_.size() > kMostWrong) wrong_.pop_back();
}

void ClassCounts::Pack(PackedNumbers& to) const {
  PackAll<int64_t>({samples_, hits_, top_five_}, to);
  for (const auto* counts : {&support_, &said_, &class_hits_, &matrix_}) PackAll(*counts, to);
  to.push_back(static_cast<double>(wrong_.size()));
  for (const WrongSample& wrong : wrong_) {
    PackAll<int64_t>({wrong.index, wrong.label, wrong.said}, to);
    to.push_back(wrong.probability);
  }
}

void ClassCounts::Merge(NumberReader& from) {
  for (int64_t* count : {&samples_, &hits_, &top_five_}) *count += from.TakeCount();
  for (auto* counts : {&support_, &said_, &class_hits_, &matrix_}) from.AddCounts(*counts);
  for (int64_t left = from.TakeCount(); left > 0; --left) {
    WrongSample wrong;
    for (int64_t* number : {&wrong.index, &wrong.label, &wrong.said}) *number = from.TakeCount();
    wrong.probability = from.Take();
    Keep(wrong);
  }
}

std::optional<double> ClassCounts::Accuracy() const { return Ratio(hits_, samples_); }

std::optional<double> ClassCounts::TopFive() const {
  if (classes_ <= 5) return std::nullopt;
  return Ratio(top_five_, samples_);
}

std::optional<double> ClassCounts::Precision(int64_t c) const { return Ratio(Hits(c), Said(c)); }
std::optional<double> ClassCounts::Recall(int64_t c) const { return Ratio(Hits(c), Support(c)); }
std::optional<double> ClassCounts::F1(int64_t c) const {
  return Ratio(2 * Hits(c), Support(c) + Said(c));
}

std::optional<double> ClassCounts::Iou(int64_t c) const {
  return Ratio(Hits(c), Support(c) + Said(c) - Hits(c));
}

std::optional<double> ClassCounts::MacroF1() const { return MeanOf(&ClassCounts::F1); }
std::optional<double> ClassCounts::MeanIou() const { return MeanOf(&ClassCounts::Iou); }

// Over the classes where it is a number.
std::optional<double> ClassCounts::MeanOf(OfClass metric) const {
  double sum = 0;
  int64_t seen = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    const std::optional<double> of_class = (this->*metric)(c);
    if (!of_class) continue;
    sum += *of_class;
    ++seen;
  }
  if (seen == 0) return std::nullopt;
  return sum / static_cast<double>(seen);
}

}  // namespace ridge
