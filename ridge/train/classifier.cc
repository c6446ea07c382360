#include "ridge/train/classifier.h"

namespace ridge {

Value Hits(GraphBuilder& b, Value logits, Value label) {
  const Value best = b.Op("argmax", {logits}, {{"axis", int64_t{-1}}});
  if (!b.ok()) return {};
  return b.Cast(b.Op("equal", {b.Cast(best, b.type(label).dtype), label}), DType::kF32);
}

}  // namespace ridge
