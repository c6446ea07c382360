#include "ridge/learn/ctc.h"

#include <numeric>

namespace ridge {

Value BestClasses(GraphBuilder& b, Value logits, Value lengths, int64_t blank) {
  if (!b.ok()) return {};
  const int64_t batch = logits.dims()[0], frames = logits.dims()[1];
  Tensor numbers({DType::kI64, {1, frames}});
  std::iota(numbers.as_mutable<int64_t>(), numbers.as_mutable<int64_t>() + frames, int64_t{0});
  const Value number = b.Constant(std::move(numbers), "ridge.frame_numbers");
  const Value counts = ReshapeExactly(Cast(lengths, DType::kI64), {batch, 1});
  const Value best = Op("argmax", {logits}, {{"axis", -1}});
  return Where(Op("less", {number, counts}), best, static_cast<double>(blank));
}

}  // namespace ridge
