#include "ridge/data/sequence.h"

namespace ridge {

void SequenceStage::Seek(int64_t epoch, int64_t index) {
  epoch_ = epoch;
  next_ = index;
}

bool SequenceStage::Next(Element& element) {
  if (next_ == samples_) return false;
  element.epoch = epoch_;
  element.index = next_;
  element.samples.assign(1, next_++);
  return true;
}

}  // namespace ridge
