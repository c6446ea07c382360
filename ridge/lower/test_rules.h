// Rules for tests.
#pragma once
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

class FusesNothing : public RewriteRules {
 public:
  bool Fuses(const OpDef&, const OpCall&) const override { return false; }
};

}  // namespace ridge
