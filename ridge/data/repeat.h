// RepeatStage: the stage above for several epochs, or without end.
#pragma once
#include <memory>

#include "ridge/data/stage.h"

namespace ridge {

class RepeatStage : public Stage {
 public:
  static constexpr int64_t kForever = -1;

  // Epochs 0 .. epochs-1.
  RepeatStage(std::unique_ptr<Stage> upstream, int64_t epochs);
  int64_t size() const override { return upstream_->size(); }  // of one epoch
  void Seek(int64_t epoch, int64_t index) override;
  bool Next(Element& element) override;  // false after the last epoch

 private:
  bool HasEpoch() const { return epochs_ == kForever || epoch_ < epochs_; }

  std::unique_ptr<Stage> upstream_;
  int64_t epochs_;
  int64_t epoch_ = 0;
};

}  // namespace ridge
