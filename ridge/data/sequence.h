// SequenceStage: the samples 0 .. samples-1 in order.  Every stack begins with it.
#pragma once
#include "ridge/data/stage.h"

namespace ridge {

class SequenceStage : public Stage {
 public:
  explicit SequenceStage(int64_t samples) : samples_(samples) {}
  int64_t size() const override { return samples_; }
  void Seek(int64_t epoch, int64_t index) override;
  bool Next(Element& element) override;

 private:
  int64_t samples_;
  int64_t epoch_ = 0;
  int64_t next_ = 0;
};

}  // namespace ridge
