#include "ridge/data/length_batches.h"

#include <utility>

#include "ridge/core/random.h"
#include "ridge/core/status.h"

namespace ridge {

LengthBatches::LengthBatches(LengthClassesPtr classes, bool shuffle, uint64_t seed)
    : classes_(std::move(classes)),
      size_(classes_->batches()),
      shuffle_(shuffle),
      seed_(seed),
      samples_(classes_->classes.size()) {
  RIDGE_CHECK(size_ >= 1, "there is a batch");
  Seek(0, 0);
}

void LengthBatches::Seek(int64_t epoch, int64_t index) {
  epoch_ = epoch;
  next_ = index;
  if (!shuffle_) return;
  batches_.emplace(size_, seed_, StableHash("shuffle batches"), epoch);
  const uint32_t first_stream = StableHash("shuffle a length");
  for (size_t c = 0; c < samples_.size(); ++c) {
    const auto count = static_cast<int64_t>(classes_->classes[c].samples.size());
    if (count > 0)
      samples_[c].emplace(count, seed_, first_stream + static_cast<uint32_t>(c), epoch);
  }
}

LengthBatches::Place LengthBatches::PlaceOf(int64_t batch) const {
  size_t c = 0;
  while (batch >= classes_->classes[c].batches()) batch -= classes_->classes[c++].batches();
  return {c, batch};
}

bool LengthBatches::Next(Element& element) {
  if (next_ == size_) return false;
  const Place place = PlaceOf(shuffle_ ? batches_->At(next_) : next_);
  const LengthClass& of = classes_->classes[place.of];
  element.samples.clear();
  for (int64_t i = place.batch * of.of.batch; i < (place.batch + 1) * of.of.batch; ++i) {
    const int64_t at = shuffle_ ? samples_[place.of]->At(i) : i;
    element.samples.push_back(of.samples[static_cast<size_t>(at)]);
  }
  element.epoch = epoch_;
  element.form = static_cast<int>(place.of);
  element.index = next_++;
  return true;
}

}  // namespace ridge
