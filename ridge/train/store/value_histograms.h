// ValueHistograms: weights, and what the optimizer keeps of gradients, as histograms for
// TensorBoard, and as norms by layer (layer_norms.h).
//
// Tags: `weights/NAME`; `momentum/NAME` of what the optimizer keeps of a gradient, Adam's first
// moment or the momentum of SGD: the gradient of a step itself is gone when the step ends.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/train/store/checkpoint.h"
#include "ridge/train/store/run_log.h"

namespace ridge {

class ValueHistograms {
 public:
  // REQUIRES: the executor of `tensors` outlives this.
  explicit ValueHistograms(const CheckpointTensors& tensors);

  // Whether writing takes less than 2 % of the time since the last one; true before the first.
  bool Due(double now_s) const;

  // At most 8192 elements of a tensor are counted, evenly spaced.
  void Write(int64_t step, RunLog& log);

 private:
  struct Series {
    std::string tag;
    PersistentTensor tensor;
    std::string parameter;
    bool is_gradient = false;
    std::optional<PersistentTensor> absmax = std::nullopt;  // of a tensor of codes
  };
  Status TakeElements(const Series& series);
  void TakeNorm(const Series& series, LayerReport& report) const;

  std::vector<Series> series_;
  std::vector<double> numbers_;  // of one tensor
  std::vector<double> absmax_;   // ... if it holds codes
  double written_s_ = 0, cost_s_ = 0;
};

}  // namespace ridge
