// KernelChooser: which of a backend's offers a node takes.
//
// The cheapest with the reorders that it needs, by the nominal device: a function of the call, the
// layouts at hand, CPU type and threads.  With PlanOptions::kernel_s the seconds that were measured
// on request decide between offers that were measured.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "ridge/core/device_profile.h"
#include "ridge/plan/planner.h"

namespace ridge {

// The reorder that reading an operand in some layout adds.
struct NeededCopy {
  LayoutId from = kRowMajor;
  double share = 0;  // of its time that this node pays; 0: none is needed
};
using NeededCopies = std::function<NeededCopy(size_t operand, LayoutId wanted)>;

class KernelChooser {
 public:
  // `kernels` and what `options` points at must outlive it.
  KernelChooser(KernelQuery& kernels, int threads, const PlanOptions& options);

  // `at_hand`: in which layout each operand is first.
  // REQUIRES: planned.call and planned.cost are set.  Sets choice and refusals.
  // Fails with kUnsupported when no kernel runs the node: the message has the refusals.
  Status Choose(const OpDef& op, std::vector<LayoutId> at_hand, PlannedNode& planned,
                const NeededCopies& copies);

 private:
  struct Node {
    const OpDef& op;
    const PlannedNode& planned;
    const NeededCopies& copies;
  };
  enum class By : uint8_t { kNominal, kMeasured };

  int Cheapest(const Node& node, std::span<const KernelChoice> offers, By by, int usual) const;
  double Price(const Node& node, const KernelChoice& choice, By by) const;
  double ReorderSeconds(const TensorType& type, LayoutId from, LayoutId to, By by) const;
  const double* Measured(const KernelChoice& choice) const;

  KernelQuery& kernels_;
  const PlanOptions options_;
  const DeviceProfile nominal_;
};

}  // namespace ridge
