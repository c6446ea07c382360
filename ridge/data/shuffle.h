// ShuffleStage: the elements of the stage above in a random order, another one each epoch.
//
// The order is a full permutation and a function of (seed, epoch): no buffer, no table, and the
// middle of an epoch is reached as fast as its start.
#pragma once
#include <memory>

#include "ridge/data/permutation.h"
#include "ridge/data/stage.h"

namespace ridge {

class ShuffleStage : public Stage {
 public:
  ShuffleStage(std::unique_ptr<Stage> upstream, uint64_t seed);
  int64_t size() const override { return upstream_->size(); }
  void Seek(int64_t epoch, int64_t index) override;
  bool Next(Element& element) override;

 private:
  std::unique_ptr<Stage> upstream_;
  uint64_t seed_;
  Permutation order_;  // of epoch_
  int64_t epoch_ = 0;
  int64_t next_ = 0;
};

}  // namespace ridge
