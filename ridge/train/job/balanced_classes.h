// BalancedClassWeights: `--class-weights auto`.
#pragma once
#include <vector>

#include "ridge/train/job/job_data.h"

namespace ridge {

// labels / (classes * labels of the class), as scikit-learn's "balanced", over the training
// samples; 0 for a class without labels.  Ignored labels count for nothing.
// REQUIRES: the model is a classifier.  Fails as reading the labels does; bad samples that may be
// skipped are left out.
Result<std::vector<double>> BalancedClassWeights(const JobData& data, const Graph& forward,
                                                 const ForwardInfo& facts);

}  // namespace ridge
