// RewriteRules: what the rewrites ask of a device before kernels and layouts are chosen.
//
// Answers are a function of the question; no kernel is made for one.
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

class RewriteRules {
 public:
  virtual ~RewriteRules() = default;
  // Whether a kernel runs `call`, a node that joins several, in one pass.
  // REQUIRES: the operator accepts the call.
  virtual bool Fuses(const OpDef& op, const OpCall& call) const = 0;
};

// Of a device that fuses whatever an operator accepts.
const RewriteRules& UnlimitedRules();

}  // namespace ridge
