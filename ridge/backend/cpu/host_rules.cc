#include "ridge/backend/cpu/host_rules.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"

namespace ridge {
namespace {

struct OpGroup {
  const char* op;
  DTypeGroup group;
};

// Attention, norms and pools have kernels for 16 bits, products write them, views don't look.
// Statistics, weights and labels stay f32.
const std::vector<OpGroup>& AllReducedGroups() {
  static const std::vector<OpGroup> all = {
      {"matmul", {{3}, {0}, /*rest=*/true}},
      {"conv", {{3}, {0}, /*rest=*/true}},
      {"conv_grad_input", {{}, {0}}},
      {"batch_norm", {{0}, {0}}},
      {"batch_norm_grad", {{0, 4}, {0}}},
      {"attention", {{0, 1, 2}, {0}}},
      {"attention_grad", {{0, 1, 2, 3, 5}, {0, 1, 2}}},
      {"layer_norm", {{}, {0}}},
      {"layer_norm_grad", {{3}, {}}},
      {"reduce_sum", {{0}, {}}},
      {"reduce_mean", {{0}, {}}},
      {"max_pool", {{0}, {0}}},
      {"max_pool_grad", {{1}, {0}}},
      {"avg_pool", {{0}, {0}}},
      {"avg_pool_grad", {{0}, {0}}},
      {"reshape", {{0}, {0}}},
      {"transpose", {{0}, {0}}},
      {"slice", {{0}, {0}}},
      {"slice_grad", {{0}, {0}}},
      {"expand", {{0}, {0}}},
      {"pad", {{0}, {0}}},
      {"concat", {{0}, {0}, /*rest=*/true}},
  };
  return all;
}

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
    std::vector<DTypeGroup> groups;
    for (const OpGroup& row : AllReducedGroups()) {
      if (op.name == row.op) groups.push_back(row.group);
    }
    return groups;
  }
};

}  // namespace

const RewriteRules& HostRules() {
  static const Rules rules;
  return rules;
}

}  // namespace ridge
