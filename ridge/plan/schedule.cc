#include "ridge/plan/schedule.h"

#include <algorithm>

#include "ridge/graph/uses.h"
#include "ridge/plan/persistent_region.h"

namespace ridge {
namespace {

// A strong reduction writes at most 1 / kShrinks of the bytes that it reads.
constexpr int64_t kShrinks = 8;

int64_t BytesOf(const Graph& graph, const std::vector<ValueId>& values) {
  int64_t bytes = 0;
  for (ValueId id : values) bytes += id == kNoValue ? 0 : graph.type(id).bytes();
  return bytes;
}

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph)
      : graph_(graph),
        uses_(graph),
        waits_(graph.nodes().size(), 0),
        releases_(graph.nodes().size()),
        done_(graph.nodes().size(), false),
        adds_gradient_(graph.nodes().size(), false) {
    for (const GraphUpdate& update : graph.updates()) {
      const NodeId producer = graph.value(update.value).producer;
      if (producer >= 0 && graph.value(update.variable).role == ValueRole::kGradient)
        adds_gradient_[static_cast<size_t>(producer)] = true;
    }
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      if (IsEager(static_cast<NodeId>(n))) AddWaits(static_cast<NodeId>(n));
    }
  }

  std::vector<NodeId> Run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      // An eager node that waits for others is done by then: Emit() of the last of them ran it.
      if (!done_[n]) Emit(static_cast<NodeId>(n));
    }
    return order_;
  }

 private:
  bool Updates(NodeId n) const {
    return IsOptimizer(graph_.node(n)) || adds_gradient_[static_cast<size_t>(n)];
  }
  bool IsEager(NodeId n) const { return Updates(n) || IsSink(n); }
  bool IsSink(NodeId n) const {
    const Node& node = graph_.node(n);
    return node.op->cost_class == CostClass::kReduce &&
           BytesOf(graph_, node.outputs) * kShrinks <= BytesOf(graph_, node.inputs);
  }

  // Node n must wait for the producers of its inputs and, if it updates variables, for other
  // readers of those that it reads; optimizers read only their own.
  void AddWaits(NodeId n) {
    std::vector<NodeId> before;
    for (ValueId id : graph_.node(n).inputs) {
      if (id == kNoValue) continue;
      const ValueInfo& info = graph_.value(id);
      if (info.producer >= 0) before.push_back(info.producer);
      if (!Updates(n) || !IsVariable(info)) continue;
      for (NodeId reader : uses_.ReadersOf(id)) {
        if (reader < n && !IsOptimizer(graph_.node(reader))) before.push_back(reader);
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    waits_[static_cast<size_t>(n)] = before.size();
    for (NodeId b : before) releases_[static_cast<size_t>(b)].push_back(n);
  }

  void Emit(NodeId n) {
    order_.push_back(n);
    done_[static_cast<size_t>(n)] = true;
    for (NodeId next : releases_[static_cast<size_t>(n)]) {
      size_t& waits = waits_[static_cast<size_t>(next)];
      if (--waits == 0 && !done_[static_cast<size_t>(next)]) Emit(next);
    }
  }

  const Graph& graph_;
  const GraphUses uses_;
  std::vector<size_t> waits_;
  std::vector<std::vector<NodeId>> releases_;
  std::vector<bool> done_;
  std::vector<bool> adds_gradient_;  // by node: its result is the new sum of a gradient
  std::vector<NodeId> order_;
};

// Moves products that a gather does not need from before it to behind it.
class GatherHider {
 public:
  explicit GatherHider(const Graph& graph) : graph_(graph), needed_(graph.nodes().size(), false) {}

  std::vector<NodeId> Run(const std::vector<NodeId>& order) {
    for (const NodeId n : order) {
      const Node& node = graph_.node(n);
      order_.push_back(n);
      if (node.op->gathers_slices) {
        if (unread_ == kNoValue) MoveBehind();
        unread_ = node.outputs[0];
        free_ = order_.size();
      } else if (ReadsGathered(node)) {
        unread_ = kNoValue;
        free_ = order_.size();
      }
    }
    return std::move(order_);
  }

 private:
  bool ReadsGathered(const Node& node) const {
    return unread_ != kNoValue &&
           std::find(node.inputs.begin(), node.inputs.end(), unread_) != node.inputs.end();
  }

  // Of [free_, end), which ends with a gather: first what it needs and the gather, then the rest.
  void MoveBehind() {
    for (size_t at = order_.size(); at-- > free_;) {
      const NodeId n = order_[at];
      if (at + 1 < order_.size() && !needed_[static_cast<size_t>(n)]) continue;
      needed_[static_cast<size_t>(n)] = true;
      for (const ValueId id : graph_.node(n).inputs) {
        const NodeId producer = id == kNoValue ? -1 : graph_.value(id).producer;
        if (producer >= 0) needed_[static_cast<size_t>(producer)] = true;
      }
    }
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(free_);
    const auto needed = [&](NodeId n) { return needed_[static_cast<size_t>(n)]; };
    const bool worth = std::any_of(begin, order_.end(), [&](NodeId n) {
      const CostClass of = graph_.node(n).op->cost_class;
      return !needed(n) && (of == CostClass::kMatmul || of == CostClass::kConv);
    });
    if (worth) std::stable_partition(begin, order_.end(), needed);
  }

  const Graph& graph_;
  std::vector<bool> needed_;  // by node: some gather needs it
  std::vector<NodeId> order_;
  size_t free_ = 0;            // what stands here or behind it may move
  ValueId unread_ = kNoValue;  // of the last gather, until a node reads it
};

bool Gathers(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->gathers_slices; });
}

}  // namespace

std::vector<NodeId> ScheduleNodes(const Graph& graph) {
  std::vector<NodeId> order = Scheduler(graph).Run();
  return Gathers(graph) ? GatherHider(graph).Run(order) : order;
}

}  // namespace ridge
