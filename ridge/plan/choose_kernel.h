// KernelChooser picks one of the backend's kernels for each node.
//
// It takes the candidate with the lowest cost on the nominal device, reorders included: a function
// of the call, the layouts of the operands, CPU type and thread count.  With PlanOptions::kernel_s,
// measured seconds decide between the candidates that were measured.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

// The reorder that an operand needs before it is read in some layout.
struct NeededCopy {
  LayoutId from = kRowMajor;
  double share = 0;  // of its time, charged to this node; 0: no reorder
};
using NeededCopies = std::function<NeededCopy(size_t operand, LayoutId wanted)>;

class KernelChooser {
 public:
  // `kernels` and what `options` points to must outlive the chooser.
  KernelChooser(KernelQuery& kernels, const PlanOptions& options);

  // `at_hand`: the layout in which each operand is produced.
  // REQUIRES: planned.call and planned.cost are set.  Sets choice and refusals.
  // Fails with kUnsupported when no kernel runs the node: the message lists the refusals.
  Status Choose(const OpDef& op, std::vector<LayoutId> at_hand, PlannedNode& planned,
                const NeededCopies& copies);

 private:
  struct Node {
    const OpDef& op;
    const PlannedNode& planned;
    const NeededCopies& copies;
  };
  enum class By : uint8_t { kNominal, kMeasured };

  int Cheapest(const Node& node, std::span<const KernelChoice> candidates, By by, int usual) const;
  double Price(const Node& node, const KernelChoice& choice, By by) const;
  double ReorderSeconds(const TensorType& type, LayoutId from, LayoutId to, By by) const;
  const double* Measured(const KernelChoice& choice) const;

  KernelQuery& kernels_;
  const PlanOptions options_;
};

}  // namespace ridge
