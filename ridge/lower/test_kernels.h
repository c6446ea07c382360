// Kernels for tests.
#pragma once
#include "ridge/lower/kernel_query.h"
#include "ridge/lower/test_costs.h"
#include "ridge/lower/test_rules.h"

namespace ridge {

// Row-major only, none for one thread.  A test gives the candidates.
class RowMajorKernels : public KernelQuery {
 public:
  const RewriteRules& rules() const override { return UnlimitedRules(); }
  const CostModel& nominal() const override { return TestCosts(); }
  bool Multiplies(DType) const override { return true; }
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }
  int64_t LayoutBytes(LayoutId, const TensorType& type) const override { return type.bytes(); }
  std::string LayoutName(LayoutId) const override { return "row_major"; }
  KernelChoice Reorder(const TensorType&, LayoutId, LayoutId) override { return {}; }
};

}  // namespace ridge
