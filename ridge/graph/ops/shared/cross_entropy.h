// What softmax_cross_entropy and its gradient share.
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

// Inputs 0 and 1 are logits, float [..., C], and labels, i64 or i32 [...].
Status CheckLogitsAndLabels(const OpCall& call);

// What a row's label asks for.
enum class RowKind { kCounted, kIgnored, kInvalid };

// `label` as the references hold it, compared as a double: 2^63 fits no int64_t.
RowKind KindOfRow(double label, int64_t classes, int64_t ignore_index);

// log(sum(exp(x))) over n elements, without overflow; -inf when n is 0.
double LogSumExp(const double* x, int64_t n);

}  // namespace ridge
