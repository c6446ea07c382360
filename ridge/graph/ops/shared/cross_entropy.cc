#include "ridge/graph/ops/shared/cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Status CheckLogitsAndLabels(const OpCall& call) {
  const TensorType &logits = call.inputs[0], &labels = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "logits"));
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 1, "labels"));
  if (logits.rank() == 0) {
    return CallError(call, "logits is a scalar; its last dimension must be the classes");
  }
  const Dims rows(logits.dims.begin(), logits.dims.end() - 1);
  return CheckType(call, 1, "labels", {labels.dtype, rows}, "one label for each row of logits");
}

RowKind KindOfRow(double label, int64_t classes, int64_t ignore_index) {
  if (label == static_cast<double>(ignore_index)) return RowKind::kIgnored;
  const bool valid = label >= 0 && label < static_cast<double>(classes);
  return valid ? RowKind::kCounted : RowKind::kInvalid;
}

double LogSumExp(const double* x, int64_t n) {
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t k = 0; k < n; ++k) max = std::max(max, x[k]);
  if (std::isinf(max)) return max;  // all -inf, or a +inf: exp(x - max) would be NaN
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += std::exp(x[k] - max);
  return max + std::log(sum);
}

}  // namespace ridge
