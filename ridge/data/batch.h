// BatchStage: groups of `batch` neighbours of the stage above.
#pragma once
#include <memory>

#include "ridge/data/stage.h"

namespace ridge {

class BatchStage : public Stage {
 public:
  // With drop_last, samples that don't fill a batch at the epoch's end are left out; without, the
  // last batch is short.  REQUIRES: batch >= 1.
  BatchStage(std::unique_ptr<Stage> upstream, int64_t batch, bool drop_last);
  int64_t size() const override;
  void Seek(int64_t epoch, int64_t index) override;
  bool Next(Element& element) override;

  int64_t dropped() const;  // elements of the stage above that an epoch leaves out

 private:
  std::unique_ptr<Stage> upstream_;
  int64_t batch_;
  bool drop_last_;
  int64_t next_ = 0;
  Element single_;
};

}  // namespace ridge
