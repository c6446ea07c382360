#include "ridge/plan/slices_in_step.h"

#include <algorithm>
#include <map>
#include <set>

#include "ridge/plan/tree_sums.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

class Steps {
 public:
  Steps(const MemorySpace& memory, StepPlan& step, std::vector<NodeId>& sources)
      : memory_(memory),
        step_(step),
        sources_(sources),
        loop_(*MicroBatchLoop(step)),
        sums_(step.sums.begin(), step.sums.end()) {}

  void Form() {
    MoveCopies();
    const StepUses uses(step_);
    FindOnce(uses);
    FormParts();
    Spread(uses);
  }

 private:
  PlannedValue& ValueAt(int value) { return step_.values[static_cast<size_t>(value)]; }
  const PlannedNode& NodeAt(int n) const { return step_.nodes[static_cast<size_t>(n)]; }

  bool MakesSum(const PlannedNode& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](int value) {
      return ValueAt(value).persistent && sums_.contains(ValueAt(value).persistent_index);
    });
  }
  bool CopiesToSum(const PlannedNode& node) { return node.def == nullptr && MakesSum(node); }

  // A copy into a sum follows the node that makes its source: then the sums of a slice are added
  // before the next slice's come.
  void MoveCopies() {
    const StepUses uses(step_);
    std::map<int, std::vector<int>> copies;  // by node
    std::vector<int> order;
    for (int n = loop_.first; n < loop_.end; ++n) {
      const int source = CopiesToSum(NodeAt(n)) ? SourceOf(uses, NodeAt(n)) : -1;
      if (source >= 0) {
        copies[source].push_back(n);
      } else {
        order.push_back(n);
      }
    }
    std::vector<PlannedNode> nodes;
    std::vector<NodeId> sources;
    const auto take = [&](int n) {
      nodes.push_back(std::move(step_.nodes[static_cast<size_t>(n)]));
      sources.push_back(sources_[static_cast<size_t>(n)]);
    };
    for (const int n : order) {
      take(n);
      for (const int copy : copies[n]) take(copy);
    }
    std::move(nodes.begin(), nodes.end(), step_.nodes.begin() + loop_.first);
    std::copy(sources.begin(), sources.end(), sources_.begin() + loop_.first);
  }

  // The node that makes what the copy reads, which may be a view of it.
  static int SourceOf(const StepUses& uses, const PlannedNode& copy) {
    const int producer = uses.ProducerOf(copy.inputs[0]);
    return producer >= 0 ? producer : uses.ProducerOf(uses.bytes().RootOf(copy.inputs[0]));
  }

  // What depends on no slice, and what reads all of them.  Addends have a place for each slice.
  void FindOnce(const StepUses& uses) {
    std::set<int> addends;  // nodes
    for (int n = loop_.first; n < loop_.end; ++n) {
      if (!MakesSum(NodeAt(n))) continue;
      addends.insert(n);
      if (CopiesToSum(NodeAt(n))) addends.insert(SourceOf(uses, NodeAt(n)));
    }
    std::vector<bool> varies(step_.values.size(), false);  // by root
    for (size_t v = 0; v < step_.values.size(); ++v)
      varies[v] = step_.values[v].persistent && step_.values[v].slice_bytes > 0;
    const auto root = [&](int value) { return static_cast<size_t>(uses.bytes().RootOf(value)); };
    for (int n = loop_.first; n < loop_.end; ++n) {
      const PlannedNode& node = NodeAt(n);
      const bool gathers = node.def == nullptr && node.choice.kernel == kAllGatherKernel;
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](int value) { return value >= 0 && varies[root(value)]; });
      if (gathers || (!any && !addends.contains(n))) {
        loop_.once.push_back(n);
      } else {
        for (const int value : node.outputs) varies[root(value)] = true;
      }
    }
  }

  void FormParts() {
    for (int n = loop_.first; n < loop_.end;) {
      int end = n + 1;
      while (end < loop_.end && CopiesToSum(NodeAt(end))) ++end;
      loop_.parts.push_back(Region::Sequence(n, end));
      n = end;
    }
    loop_.in_step = true;
  }

  // A part for each slice of what its nodes make, and of the views of it.
  void Spread(const StepUses& uses) {
    if (step_.slices == 1) return;
    std::vector<bool> by_slice(step_.values.size(), false);  // by root
    for (int n = loop_.first; n < loop_.end; ++n) {
      if (std::binary_search(loop_.once.begin(), loop_.once.end(), n)) continue;
      for (const int value : NodeAt(n).outputs)
        by_slice[static_cast<size_t>(uses.bytes().RootOf(value))] = true;
    }
    for (int v = 0; v < static_cast<int>(step_.values.size()); ++v) {
      PlannedValue& value = ValueAt(v);
      if (value.persistent || value.slice_bytes > 0 ||
          !by_slice[static_cast<size_t>(uses.bytes().RootOf(v))])
        continue;
      value.slice_bytes = memory_.Aligned(value.size_bytes);
      value.size_bytes = value.slice_bytes * step_.slices;
    }
  }

  const MemorySpace& memory_;
  StepPlan& step_;
  std::vector<NodeId>& sources_;
  Region& loop_;
  const std::set<int> sums_;
};

}  // namespace

bool RunsInStep(const NamedGraph& named) {
  const auto& nodes = named.graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return node.op->gathers_slices; });
}

void FormSteps(const MemorySpace& memory, StepPlan& step, std::vector<NodeId>& sources) {
  Steps(memory, step, sources).Form();
}

}  // namespace ridge
