// Optimizer nodes are independent: no other node writes the parameter and moments of one, so their
// layouts are chosen one node at a time.  Known weakness: one copy per reader's layout remains (the
// data gradient's weights); the optimizer could write it too, which would save a read and cost the
// bytes of a second copy.
#include "ridge/plan/weight_layout.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ridge/plan/lower.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

// In a tree the runs of one rank that has all slices: every rank keeps the same layout, however
// many of them it has.
int64_t RunsOfAllRanks(const StepPlan& step, size_t node) {
  const int64_t runs = RunsOf(step, node);
  const Region* loop = MicroBatchLoop(step);
  const int n = static_cast<int>(node);
  if (!step.tree || loop == nullptr || !loop->Holds(n) ||
      std::binary_search(loop->once.begin(), loop->once.end(), n))
    return runs;
  return step.tree->share.slices - (loop->trips - runs);
}

// The same of a copy of a variable for this node: where slices run in step, one serves all of them.
int64_t CopiesOfAllRanks(const StepPlan& step, size_t node) {
  const Region* loop = MicroBatchLoop(step);
  const bool in_step = loop != nullptr && loop->in_step && loop->Holds(static_cast<int>(node));
  return in_step ? 1 : RunsOfAllRanks(step, node);
}

// The weight of steps that change no variable: evaluations, which are rare.
constexpr double kEvaluations = 0.05;

bool IsOptimizer(const PlannedNode& node) {
  return node.def != nullptr && node.def->cost_class == CostClass::kOptimizer;
}

// An optimizer's node, what it updates, and its gradient.
struct Update {
  size_t step = 0;
  int node = 0;
  TensorType type;
  std::vector<int> variables;        // persistent; by output
  size_t grad = 0;                   // input
  LayoutId grad_layout = kRowMajor;  // before a reorder for this node alone
  int sum = -1;                      // persistent: the gradient over all slices, if it may move
  int64_t grad_runs = 1;             // of that reorder, by all ranks
};

class Vote {
 public:
  Vote(KernelQuery& kernels, const std::vector<PersistentValue>& persistent,
       const std::vector<StepPlan>& steps)
      : kernels_(kernels), nominal_(kernels.nominal()), persistent_(persistent), steps_(steps) {
    for (const StepPlan& step : steps) {
      uses_.emplace_back(step);
      variables_.emplace_back(step, uses_.back(), persistent.size());
      writers_.push_back(WritersIn(step, uses_.back(), persistent.size()));
    }
    result_.kernels.resize(steps.size());
  }

  WeightLayouts Run() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (size_t n = 0; n < steps_[s].nodes.size(); ++n) {
        if (!IsOptimizer(steps_[s].nodes[n])) continue;
        if (const auto update = Describe(s, static_cast<int>(n))) Consider(*update);
      }
    }
    return std::move(result_);
  }

 private:
  const PlannedNode& NodeOf(const Update& u) const {
    return steps_[u.step].nodes[static_cast<size_t>(u.node)];
  }

  // Whether the value has views or is an output.
  bool IsShown(size_t t, int value) const {
    const auto& outputs = steps_[t].outputs;
    return uses_[t].bytes().IsShared(value) ||
           std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& output) { return output.second == value; });
  }

  // --- what may be kept otherwise ------------------------------------------------------------

  std::optional<Update> Describe(size_t s, int n) const {
    const PlannedNode& node = steps_[s].nodes[static_cast<size_t>(n)];
    if (node.on_host) return std::nullopt;
    Update u;
    u.step = s;
    u.node = n;
    u.type = node.call.outputs[0];
    if (u.type.rank() < 2) return std::nullopt;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const PlannedValue& output = steps_[s].values[static_cast<size_t>(node.outputs[k])];
      if (node.call.outputs[k] != u.type || !output.persistent) return std::nullopt;
      if (IsShown(s, node.outputs[k]) || !uses_[s].ReadsOf(node.outputs[k]).empty())
        return std::nullopt;
      if (!MayMove(output.persistent_index, s)) return std::nullopt;
      u.variables.push_back(output.persistent_index);
    }
    return FindGrad(node, u) ? std::optional(u) : std::nullopt;
  }

  // Whether the variable is written only here, has no views, is no output, and has no copies in
  // other variables.
  bool MayMove(int variable, size_t written_in) const {
    for (size_t t = 0; t < steps_.size(); ++t) {
      if (variables_[t].Writes(variable) != (t == written_in ? 1 : 0)) return false;
      const int base = variables_[t].Before(variable);
      if (base >= 0 && IsShown(t, base)) return false;
      if (base >= 0 && !CopiesStayInside(t, base)) return false;
    }
    return true;
  }

  // Whether no copy goes into another variable, which would stay row-major.
  bool CopiesStayInside(size_t t, int base) const {
    const std::vector<Read>& reads = uses_[t].ReadsOf(base);
    return std::none_of(reads.begin(), reads.end(), [&](const Read& read) {
      const PlannedNode& node = steps_[t].nodes[static_cast<size_t>(read.node)];
      return node.def == nullptr &&
             steps_[t].values[static_cast<size_t>(node.outputs[0])].persistent;
    });
  }

  bool IsVariable(const Update& u, int input) const {
    return std::any_of(u.variables.begin(), u.variables.end(),
                       [&](int v) { return variables_[u.step].Before(v) == input; });
  }

  // The one operand of the parameter's type that is not updated.
  bool FindGrad(const PlannedNode& node, Update& u) const {
    size_t variables = 0, others = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0 || node.call.inputs[i] != u.type) continue;
      if (IsVariable(u, node.inputs[i])) {
        ++variables;
      } else {
        ++others;
        u.grad = i;
      }
    }
    if (others != 1 || variables != u.variables.size()) return false;
    FindSum(node, u);
    if (u.sum >= 0) return true;
    const StepUses& uses = uses_[u.step];
    const int grad = node.inputs[u.grad], producer = uses.ProducerOf(grad);
    const bool kept = steps_[u.step].values[static_cast<size_t>(grad)].persistent;
    if (producer < 0 || kept || IsShown(u.step, grad) || uses.ReadsOf(grad).size() != 1)
      return true;
    const PlannedNode& made = steps_[u.step].nodes[static_cast<size_t>(producer)];
    if (made.def != nullptr) return true;
    u.grad_layout = steps_[u.step].values[static_cast<size_t>(made.inputs[0])].layout;
    return true;
  }

  // A sum over the slices of a tree, which only this node reads, may lie as the variables do.
  void FindSum(const PlannedNode& node, Update& u) const {
    const StepPlan& step = steps_[u.step];
    const PlannedValue& grad = step.values[static_cast<size_t>(node.inputs[u.grad])];
    const int sum = grad.persistent_index;
    if (!step.tree || !grad.persistent ||
        std::find(step.sums.begin(), step.sums.end(), sum) == step.sums.end() ||
        variables_[u.step].Before(sum) != node.inputs[u.grad] || !MayMove(sum, u.step) ||
        uses_[u.step].ReadsOf(node.inputs[u.grad]).size() != 1)
      return;
    const int writer = writers_[u.step][static_cast<size_t>(sum)];
    if (writer < 0) return;
    u.sum = sum;
    u.grad_runs = RunsOfAllRanks(step, static_cast<size_t>(writer));
    u.grad_layout = LayoutBeforeCopies(u.step, writer);
  }

  // By persistent index: the first node that writes it; -1: none.
  static std::vector<int> WritersIn(const StepPlan& step, const StepUses& uses, size_t persistent) {
    std::vector<int> writers(persistent, -1);
    for (size_t v = 0; v < step.values.size(); ++v) {
      const PlannedValue& value = step.values[v];
      if (!value.persistent) continue;
      int& writer = writers[static_cast<size_t>(value.persistent_index)];
      if (writer < 0) writer = uses.ProducerOf(static_cast<int>(v));
    }
    return writers;
  }

  // Of what a copy, or a copy of one, brings into another layout.
  LayoutId LayoutBeforeCopies(size_t t, int node) const {
    LayoutId layout = kRowMajor;
    while (node >= 0) {
      const PlannedNode& made = steps_[t].nodes[static_cast<size_t>(node)];
      if (made.def != nullptr) break;
      layout = steps_[t].values[static_cast<size_t>(made.inputs[0])].layout;
      node = layout == kRowMajor ? uses_[t].ProducerOf(made.inputs[0]) : -1;
    }
    return layout;
  }

  // --- choosing ------------------------------------------------------------------------------

  void Consider(const Update& u) {
    double best = Price(u, kRowMajor, NodeOf(u).choice);
    LayoutId layout = kRowMajor;
    std::optional<KernelChoice> choice;
    for (const LayoutId candidate : Candidates(u)) {
      if (candidate == kRowMajor || !ReadsEnd(u, candidate)) continue;
      auto offer = OfferIn(u, candidate);
      if (!offer) continue;
      const double price = Price(u, candidate, *offer);
      if (price >= best) continue;
      best = price;
      layout = candidate;
      choice = std::move(offer);
    }
    if (choice) Keep(u, layout, std::move(*choice));
  }

  std::vector<LayoutId> Candidates(const Update& u) const {
    std::vector<LayoutId> layouts;
    for (size_t t = 0; t < steps_.size(); ++t) {
      for (const int variable : u.variables) {
        for (const auto& [layout, runs] : LayoutsRead(u, t, variable)) layouts.push_back(layout);
      }
    }
    layouts.push_back(u.grad_layout);
    return layouts;
  }

  // In which layout the node would have the variable: of a reorder its target, of a cast the one in
  // which its result is read.
  LayoutId WantedBy(const PlannedNode& node, size_t t) const {
    const std::vector<PlannedValue>& values = steps_[t].values;
    const int result = node.outputs[0];
    if (node.def == nullptr) return values[static_cast<size_t>(result)].layout;
    const std::vector<Read>& reads = uses_[t].ReadsOf(result);
    if (node.op != "cast" || IsShown(t, result) || reads.empty()) return kRowMajor;
    LayoutId wanted = kRowMajor;
    for (const Read& read : reads) {
      const PlannedNode& reader = steps_[t].nodes[static_cast<size_t>(read.node)];
      if (reader.def != nullptr) return kRowMajor;
      wanted = values[static_cast<size_t>(reader.outputs[0])].layout;
    }
    return CastIn(node, wanted) ? wanted : kRowMajor;
  }

  // The kernel of a cast that reads and writes in this layout.
  std::optional<KernelChoice> CastIn(const PlannedNode& node, LayoutId layout) const {
    KernelCandidates candidates = kernels_.Candidates(*node.def, node.call, {&layout, 1});
    for (KernelChoice& choice : candidates.choices) {
      if (choice.input_layouts[0] == layout && choice.output_layouts[0] == layout)
        return std::move(choice);
    }
    return std::nullopt;
  }

  // How often one execution of step t would copy into each layout.
  std::map<LayoutId, int64_t> LayoutsRead(const Update& u, size_t t, int variable) const {
    std::map<LayoutId, int64_t> layouts;
    const int base = variables_[t].Before(variable);
    if (base < 0) return layouts;
    for (const Read& read : uses_[t].ReadsOf(base)) {
      if (t == u.step && read.node == u.node) continue;
      const PlannedNode& node = steps_[t].nodes[static_cast<size_t>(read.node)];
      int64_t& runs = layouts[WantedBy(node, t)];
      runs = std::max(runs, CopiesOfAllRanks(steps_[t], static_cast<size_t>(read.node)));
    }
    return layouts;
  }

  // Whether reads in this layout end before the update: unlike copies of the old contents, the
  // variable itself must not be read after it.
  bool ReadsEnd(const Update& u, LayoutId layout) const {
    const StepUses& uses = uses_[u.step];
    for (const int variable : u.variables) {
      for (const Read& read : uses.ReadsOf(variables_[u.step].Before(variable))) {
        const PlannedNode& node = steps_[u.step].nodes[static_cast<size_t>(read.node)];
        if (node.def != nullptr) continue;
        const int copy = node.outputs[0];
        if (steps_[u.step].values[static_cast<size_t>(copy)].layout != layout) continue;
        if (IsShown(u.step, copy)) return false;
        for (const Read& later : uses.ReadsOf(copy)) {
          if (later.node >= u.node) return false;
        }
      }
    }
    return true;
  }

  std::optional<KernelChoice> OfferIn(const Update& u, LayoutId layout) {
    const PlannedNode& node = NodeOf(u);
    std::vector<LayoutId> available(node.inputs.size(), kRowMajor);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0 && node.call.inputs[i] == u.type) available[i] = layout;
    }
    const std::vector<LayoutId> same = available;
    std::vector<LayoutId> other = available;
    if (u.sum < 0) other[u.grad] = kRowMajor;
    if (u.sum < 0 && u.grad_layout != layout) available[u.grad] = kRowMajor;
    KernelCandidates candidates = kernels_.Candidates(*node.def, node.call, available);
    for (KernelChoice& choice : candidates.choices) {
      const bool everywhere =
          std::all_of(choice.output_layouts.begin(), choice.output_layouts.end(),
                      [&](LayoutId output) { return output == layout; });
      if (everywhere && (choice.input_layouts == same || choice.input_layouts == other))
        return std::move(choice);
    }
    return std::nullopt;
  }

  double ReorderSeconds(const TensorType& type, LayoutId from, LayoutId to) const {
    return from == to ? 0 : nominal_.CopySeconds(type, kernels_.Reorder(type, from, to));
  }

  // Seconds of the optimizer, including padding, and of the copies of variables and gradient.
  double Price(const Update& u, LayoutId layout, const KernelChoice& choice) const {
    double seconds = static_cast<double>(u.grad_runs) *
                     ReorderSeconds(u.type, u.grad_layout, choice.input_layouts[u.grad]);
    seconds += nominal_.Seconds({CostClass::kOptimizer, u.type.dtype, NodeOf(u).cost}, choice);
    for (size_t t = 0; t < steps_.size(); ++t) {
      const double share = variables_[t].any_writes() ? 1 : kEvaluations;
      for (const int variable : u.variables) {
        for (const auto& [read, runs] : LayoutsRead(u, t, variable))
          seconds += share * static_cast<double>(runs) * ReorderSeconds(u.type, layout, read);
      }
    }
    const int64_t padding = kernels_.LayoutBytes(layout, u.type) - u.type.bytes();
    const auto sweeps = static_cast<double>(2 * u.variables.size() + 1);
    return seconds + sweeps * static_cast<double>(padding) / nominal_.BytesPerS(u.type.bytes());
  }

  void Keep(const Update& u, LayoutId layout, KernelChoice choice) {
    for (const int variable : u.variables)
      result_.variables[persistent_[static_cast<size_t>(variable)].name] = layout;
    if (u.sum >= 0) result_.variables[persistent_[static_cast<size_t>(u.sum)].name] = layout;
    result_.kernels[u.step][u.node] = std::move(choice);
    for (size_t t = 0; t < steps_.size(); ++t) {
      for (const int variable : u.variables) KeepCasts(t, variable, layout);
    }
  }

  void KeepCasts(size_t t, int variable, LayoutId layout) {
    const int base = variables_[t].Before(variable);
    if (base < 0) return;
    for (const Read& read : uses_[t].ReadsOf(base)) {
      const PlannedNode& node = steps_[t].nodes[static_cast<size_t>(read.node)];
      if (node.def != nullptr && WantedBy(node, t) == layout)
        result_.kernels[t][read.node] = *CastIn(node, layout);
    }
  }

  KernelQuery& kernels_;
  const CostModel& nominal_;
  const std::vector<PersistentValue>& persistent_;
  const std::vector<StepPlan>& steps_;
  std::vector<StepUses> uses_;  // by step
  std::vector<VariableUses> variables_;
  std::vector<std::vector<int>> writers_;
  WeightLayouts result_;
};

}  // namespace

WeightLayouts VoteWeightLayouts(KernelQuery& kernels,
                                const std::vector<PersistentValue>& persistent,
                                const std::vector<StepPlan>& steps) {
  return Vote(kernels, persistent, steps).Run();
}

}  // namespace ridge
