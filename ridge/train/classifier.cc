#include "ridge/train/classifier.h"

#include <numeric>

namespace ridge {

Value Hits(GraphBuilder& b, Value logits, Value label) {
  const Value best = b.Op("argmax", {logits}, {{"axis", int64_t{-1}}});
  if (!b.ok()) return {};
  const Value hits = b.Cast(b.Op("equal", {b.Cast(best, b.type(label).dtype), label}), DType::kF32);
  if (!b.ok() || b.type(hits).rank() == 1) return hits;
  std::vector<int64_t> positions(static_cast<size_t>(b.type(hits).rank() - 1));
  std::iota(positions.begin(), positions.end(), int64_t{1});
  return b.ReduceMean(hits, positions, /*keep_dims=*/false);
}

}  // namespace ridge
