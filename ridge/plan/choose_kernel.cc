// Measurements overrule the nominal device only where its own choice was measured too: a kernel in
// the table must not win against kernels that were never timed.  The other kernel must be clearly
// faster: a choice within the noise would change the bits of a run for nothing.
#include "ridge/plan/choose_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kClearlyFaster = 0.97;
constexpr int kNone = -1;

bool RowMajorOnly(const KernelChoice& choice) {
  const auto plain = [](LayoutId layout) { return layout == kRowMajor; };
  return std::all_of(choice.input_layouts.begin(), choice.input_layouts.end(), plain) &&
         std::all_of(choice.output_layouts.begin(), choice.output_layouts.end(), plain);
}

Status NoKernel(const PlannedNode& planned) {
  std::string reasons;
  for (const KernelRefusal& refusal : planned.refusals)
    reasons += fmt::format("\n  {}: {}", refusal.kernel, refusal.reason);
  return Status(ErrorCode::kUnsupported,
                planned.call.where + ": no kernel runs this node here" + reasons);
}

}  // namespace

KernelChooser::KernelChooser(KernelQuery& kernels, const PlanOptions& options)
    : kernels_(kernels), options_(options) {}

Status KernelChooser::Choose(const OpDef& op, std::vector<LayoutId> at_hand, PlannedNode& planned,
                             const NeededCopies& copies) {
  if (!options_.layout) at_hand.assign(at_hand.size(), kRowMajor);
  KernelCandidates candidates = kernels_.Candidates(op, planned.call, at_hand);
  planned.refusals = std::move(candidates.refusals);
  const Node node{op, planned, copies};
  int best = Cheapest(node, candidates.choices, By::kNominal, kNone);
  if (best == kNone) return NoKernel(planned);
  if (Measured(candidates.choices[static_cast<size_t>(best)]) != nullptr)
    best = Cheapest(node, candidates.choices, By::kMeasured, best);
  planned.choice = std::move(candidates.choices[static_cast<size_t>(best)]);
  return Status();
}

// `usual` stays unless another one is clearly faster.
int KernelChooser::Cheapest(const Node& node, std::span<const KernelChoice> candidates, By by,
                            int usual) const {
  int best = kNone;
  double best_s = kInfinity;
  for (int i = 0; i < static_cast<int>(candidates.size()); ++i) {
    const KernelChoice& choice = candidates[static_cast<size_t>(i)];
    if (!options_.layout && !RowMajorOnly(choice)) continue;
    const double seconds = Price(node, choice, by) * (i == usual ? kClearlyFaster : 1);
    if (seconds >= best_s) continue;
    best_s = seconds;
    best = i;
  }
  return best;
}

// The node itself and the reorders that this choice would add.
double KernelChooser::Price(const Node& node, const KernelChoice& choice, By by) const {
  const OpCall& call = node.planned.call;
  double seconds = kInfinity;
  if (by == By::kNominal) {
    seconds = kernels_.nominal().Seconds(WorkOf(&node.op, call, node.planned.cost), choice);
  } else if (const double* measured = Measured(choice)) {
    seconds = *measured;
  }
  for (size_t i = 0; i < choice.input_layouts.size(); ++i) {
    const LayoutId to = choice.input_layouts[i];
    const NeededCopy copy = node.copies(i, to);
    if (copy.share > 0 && copy.from != to)
      seconds += copy.share * ReorderSeconds(call.inputs[i], copy.from, to, by);
  }
  return seconds;
}

double KernelChooser::ReorderSeconds(const TensorType& type, LayoutId from, LayoutId to,
                                     By by) const {
  const KernelChoice reorder = kernels_.Reorder(type, from, to);
  if (by == By::kMeasured) {
    if (const double* measured = Measured(reorder)) return *measured;
  }
  return kernels_.nominal().CopySeconds(type, reorder);
}

const double* KernelChooser::Measured(const KernelChoice& choice) const {
  if (options_.kernel_s == nullptr) return nullptr;
  const auto found = options_.kernel_s->find(choice.key);
  return found == options_.kernel_s->end() ? nullptr : &found->second;
}

}  // namespace ridge
