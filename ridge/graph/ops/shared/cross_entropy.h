// What softmax_cross_entropy and its gradient share.
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

// Inputs 0 and 1 are logits, float [..., C], and labels, i64 or i32 [...].
Status CheckLogitsAndLabels(const OpCall& call);

// log(sum(exp(x))) over n elements, without overflow; -inf when n is 0.
double LogSumExp(const double* x, int64_t n);

}  // namespace ridge
