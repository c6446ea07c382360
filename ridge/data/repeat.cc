#include "ridge/data/repeat.h"

#include <utility>

namespace ridge {

RepeatStage::RepeatStage(std::unique_ptr<Stage> upstream, int64_t epochs)
    : upstream_(std::move(upstream)), epochs_(epochs) {}

void RepeatStage::Seek(int64_t epoch, int64_t index) {
  epoch_ = epoch;
  upstream_->Seek(epoch, index);
}

bool RepeatStage::Next(Element& element) {
  if (!HasEpoch()) return false;
  if (upstream_->Next(element)) return true;
  Seek(epoch_ + 1, 0);
  return HasEpoch() && upstream_->Next(element);
}

}  // namespace ridge
