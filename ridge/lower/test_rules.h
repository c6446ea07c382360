// Rules for tests.
#pragma once
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Fuses whatever an operator accepts, and multiplies 16 bits at twice the rate of f32.
class TestRules : public RewriteRules {
 public:
  bool Fuses(const OpDef&, const OpCall&) const override { return true; }
  ReducedRates RatesOf(DType) const override { return {2, 8, 48}; }
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    if (op.name == "matmul" || op.name == "conv") return {{{3}, {0}, /*rest=*/true}};
    if (op.name == "batch_norm") return {{{0}, {0}}};
    return {};
  }
};

inline const RewriteRules& UnlimitedRules() {
  static const TestRules rules;
  return rules;
}

class FusesNothing : public TestRules {
 public:
  bool Fuses(const OpDef&, const OpCall&) const override { return false; }
};

}  // namespace ridge
