#include "ridge/data/shuffle.h"

#include <utility>

#include "ridge/core/random.h"

namespace ridge {
namespace {

Permutation OrderOf(int64_t size, uint64_t seed, int64_t epoch) {
  return Permutation(size, seed, StableHash("shuffle"), epoch);
}

}  // namespace

ShuffleStage::ShuffleStage(std::unique_ptr<Stage> upstream, uint64_t seed)
    : upstream_(std::move(upstream)),
      seed_(seed),
      order_(OrderOf(upstream_->size(), seed, /*epoch=*/0)) {}

void ShuffleStage::Seek(int64_t epoch, int64_t index) {
  order_ = OrderOf(size(), seed_, epoch);
  epoch_ = epoch;
  next_ = index;
}

bool ShuffleStage::Next(Element& element) {
  if (next_ == size()) return false;
  upstream_->Seek(epoch_, order_.At(next_));
  if (!upstream_->Next(element)) return false;
  element.index = next_++;
  return true;
}

}  // namespace ridge
