#include "ridge/backend/cpu/host_rules.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/lower/reduced_groups.h"

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
  ReducedRates RatesOf(DType) const override {
    // A depthwise convolution has 9 FLOPs an element, a 1x1 convolution of 64 channels 64.
    return {.speed = 2, .flops_per_byte = 8, .least_flops_per_element = 48};
  }
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    return UsualReducedGroups(op);
  }
};

}  // namespace

const RewriteRules& HostRules() {
  static const Rules rules;
  return rules;
}

}  // namespace ridge
