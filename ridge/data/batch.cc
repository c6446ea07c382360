#include "ridge/data/batch.h"

#include <algorithm>
#include <utility>

#include "ridge/core/status.h"

namespace ridge {

BatchStage::BatchStage(std::unique_ptr<Stage> upstream, int64_t batch, bool drop_last)
    : upstream_(std::move(upstream)), batch_(batch), drop_last_(drop_last) {
  RIDGE_CHECK(batch >= 1, "a batch has at least one sample");
}

int64_t BatchStage::size() const {
  const int64_t whole = upstream_->size() / batch_;
  const bool has_rest = upstream_->size() % batch_ != 0;
  return whole + (has_rest && !drop_last_ ? 1 : 0);
}

int64_t BatchStage::dropped() const { return drop_last_ ? upstream_->size() % batch_ : 0; }

void BatchStage::Seek(int64_t epoch, int64_t index) {
  next_ = index;
  upstream_->Seek(epoch, std::min(index * batch_, upstream_->size()));
}

bool BatchStage::Next(Element& element) {
  if (next_ == size()) return false;
  element.samples.clear();
  for (int64_t i = 0; i < batch_ && upstream_->Next(single_); ++i)
    element.samples.insert(element.samples.end(), single_.samples.begin(), single_.samples.end());
  element.epoch = single_.epoch;
  element.index = next_++;
  return true;
}

}  // namespace ridge
