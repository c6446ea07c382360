#include "ridge/backend/cpu/host_rules.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"

namespace ridge {
namespace {

class Rules : public RewriteRules {
 public:
  bool Fuses(const OpDef& op, const OpCall& call) const override {
    const std::vector<cpu::KernelDef>& defs = cpu::AllKernels();
    return std::any_of(defs.begin(), defs.end(), [&](const cpu::KernelDef& def) {
      return def.fuses != nullptr && def.Runs(op) && def.fuses(call);
    });
  }
};

}  // namespace

const RewriteRules& HostRules() {
  static const Rules rules;
  return rules;
}

}  // namespace ridge
