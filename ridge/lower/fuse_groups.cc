// One walk over the nodes; a pointwise node joins the groups of its inputs where that is legal,
// else it starts a group of its own.
//
// Joining is illegal when a path leaves the group and comes back through an outside node: the
// fused node would have to wait for itself.  Each node and group carries a mask, `below`, of the
// groups it depends on; a node that reads outside values may join a group that is in none of their
// masks.  A mask has 64 slots, one for each of the latest groups; older groups take no more
// members, so their bits need not be kept, and a slot's bits are only believed when they were set
// after its group began.  Masks stay exact because a group that an outside node has read takes
// nothing that would add to its own mask.
//
// Known weakness: a member that could move after a later node stays outside when the masks are too
// conservative, and a group takes no member more than kWindow nodes after its last one: values
// of the backward pass computed in the forward pass would only wait in memory.
#include "ridge/lower/fuse_groups.h"

#include <algorithm>
#include <array>

#include "ridge/graph/expression.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr size_t kSlots = 64;
constexpr NodeId kWindow = 32;

using Mask = uint64_t;

struct Group {
  Dims dims;
  std::vector<NodeId> members;
  std::vector<int32_t> outside_reads;  // for each member: reads that are not in the group
  std::vector<ValueId> inputs;         // read from outside, each once, sorted
  Mask slots = 0;                      // its own bits
  Mask below = 0;                      // of the groups it depends on
  NodeId last = -1;
  bool read_outside = false;  // by a node that came and did not join
  bool open = true;

  size_t Outputs() const {
    return outside_reads.size() -
           static_cast<size_t>(std::count(outside_reads.begin(), outside_reads.end(), 0));
  }
};

class GroupFinder {
 public:
  GroupFinder(const Graph& graph, const RewriteRules& rules)
      : graph_(graph),
        rules_(rules),
        uses_(graph),
        group_of_(graph.nodes().size(), -1),
        below_(graph.nodes().size(), 0) {
    slot_group_.fill(-1);
    slot_start_.fill(-1);
  }

  std::vector<std::vector<NodeId>> Run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) Visit(static_cast<NodeId>(n));
    std::vector<std::vector<NodeId>> found;
    for (Group& group : groups_) {
      std::sort(group.members.begin(), group.members.end());
      if (group.members.size() > 1) found.push_back(std::move(group.members));
    }
    return found;
  }

 private:
  void Visit(NodeId n) {
    const Node& node = graph_.node(n);
    if (IsPointwise(node)) {
      Place(n);
    } else {
      below_[static_cast<size_t>(n)] = MaskOfInputs(n, /*without=*/nullptr);
    }
    for (ValueId id : node.inputs) {  // those whose groups n did not join
      const int32_t group = GroupOfValue(id);
      if (group >= 0 && group != group_of_[static_cast<size_t>(n)]) {
        groups_[static_cast<size_t>(group)].read_outside = true;
      }
    }
  }

  bool IsPointwise(const Node& node) const {
    if (node.op->elementwise == nullptr || node.outputs.size() != 1) return false;
    const auto grouped = [&](ValueId id) {
      return id != kNoValue && rules_.GroupsPointwise(graph_.type(id).dtype);
    };
    return grouped(node.outputs[0]) && std::all_of(node.inputs.begin(), node.inputs.end(), grouped);
  }

  // Into the groups of its inputs, as many as may be united, or into a new one.
  void Place(NodeId n) {
    Group joined;
    std::vector<int32_t> united;
    for (int32_t candidate : Candidates(n)) {
      Group trial = joined;
      if (united.empty()) trial = groups_[static_cast<size_t>(candidate)];
      const bool legal = united.empty() || Unite(trial, groups_[static_cast<size_t>(candidate)]);
      Group with_node = trial;
      if (!legal || !Join(with_node, n)) continue;
      joined = std::move(trial);
      united.push_back(candidate);
    }
    if (united.empty()) {
      StartGroup(n);
      return;
    }
    Join(joined, n);
    Commit(united, std::move(joined));
  }

  // The open groups that n reads and that are not too far back, latest first.
  std::vector<int32_t> Candidates(NodeId n) const {
    std::vector<int32_t> found;
    const Dims& dims = graph_.type(graph_.node(n).outputs[0]).dims;
    for (ValueId id : graph_.node(n).inputs) {
      const int32_t group = GroupOfValue(id);
      if (group < 0 || std::find(found.begin(), found.end(), group) != found.end()) continue;
      const Group& candidate = groups_[static_cast<size_t>(group)];
      const bool fits = candidate.open && candidate.dims == dims && n - candidate.last <= kWindow;
      if (fits) found.push_back(group);
    }
    std::sort(found.begin(), found.end(), [this](int32_t a, int32_t b) {
      return groups_[static_cast<size_t>(a)].last > groups_[static_cast<size_t>(b)].last;
    });
    return found;
  }

  // False when a path from one to the other runs outside, or the sum is too large.
  static bool Unite(Group& a, const Group& b) {
    const Mask own = a.slots | b.slots;
    if ((a.below & b.slots) != 0 || (b.below & a.slots) != 0) return false;
    if (a.read_outside && (b.below & ~(a.below | own)) != 0) return false;
    if (b.read_outside && (a.below & ~(b.below | own)) != 0) return false;
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    a.outside_reads.insert(a.outside_reads.end(), b.outside_reads.begin(), b.outside_reads.end());
    for (ValueId id : b.inputs) AddInput(a, id);
    a.slots = own;
    a.below |= b.below;
    a.last = std::max(a.last, b.last);
    a.read_outside = a.read_outside || b.read_outside;
    return Fits(a);
  }

  // False when an input depends on the group, or the group gets too large.
  bool Join(Group& group, NodeId n) const {
    const Mask mask = MaskOfInputs(n, &group);
    // A way back into the group begins with a read from outside, and its own bit is never below it.
    if (group.read_outside && (mask & ~group.below) != 0) return false;
    for (ValueId id : graph_.node(n).inputs) {
      const auto member = std::find(group.members.begin(), group.members.end(), Producer(id));
      if (Producer(id) >= 0 && member != group.members.end()) {
        --group.outside_reads[static_cast<size_t>(member - group.members.begin())];
      } else {
        AddInput(group, id);
      }
    }
    group.members.push_back(n);
    group.outside_reads.push_back(uses_.ReadsOf(graph_.node(n).outputs[0]));
    group.below |= mask;
    group.last = n;
    return Fits(group);
  }

  static void AddInput(Group& group, ValueId id) {
    const auto at = std::lower_bound(group.inputs.begin(), group.inputs.end(), id);
    if (at == group.inputs.end() || *at != id) group.inputs.insert(at, id);
  }

  static bool Fits(const Group& group) {
    return group.members.size() <= kMostExpressionSteps &&
           group.inputs.size() <= kMostExpressionInputs &&
           group.Outputs() <= kMostExpressionOutputs;
  }

  // All groups that the inputs of n depend on, those from members of `without` left out.
  Mask MaskOfInputs(NodeId n, const Group* without) const {
    Mask mask = 0;
    for (ValueId id : graph_.node(n).inputs) {
      const NodeId producer = Producer(id);
      if (producer < 0) continue;
      const int32_t group = group_of_[static_cast<size_t>(producer)];
      if (group < 0) {
        mask |= Valid(below_[static_cast<size_t>(producer)], producer);
        continue;
      }
      const Group& source = groups_[static_cast<size_t>(group)];
      // `without` may be a trial that holds this group: it then has its slots.
      if (without != nullptr && (source.slots & without->slots) != 0) continue;
      mask |= source.open ? source.slots | source.below : Valid(source.below, source.last);
    }
    return mask;
  }

  // The bits of groups that had begun when the mask was made.
  Mask Valid(Mask mask, NodeId made) const {
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const auto slot = static_cast<size_t>(__builtin_ctzll(rest));
      if (slot_start_[slot] > made) mask &= ~(Mask{1} << slot);
    }
    return mask;
  }

  void StartGroup(NodeId n) {
    Group group;
    group.dims = graph_.type(graph_.node(n).outputs[0]).dims;
    group.slots = TakeSlot(n, static_cast<int32_t>(groups_.size()));
    Join(group, n);
    group_of_[static_cast<size_t>(n)] = static_cast<int32_t>(groups_.size());
    groups_.push_back(std::move(group));
  }

  // The oldest slot; the group that has it takes no more members.
  Mask TakeSlot(NodeId n, int32_t group) {
    const size_t slot = next_slot_++ % kSlots;
    const Mask bit = Mask{1} << slot;
    if (slot_group_[slot] >= 0) {
      Group& closed = groups_[static_cast<size_t>(slot_group_[slot])];
      closed.open = false;
      closed.slots = 0;  // the bit is the new group's
    }
    for (int32_t other : slot_group_) {
      if (other >= 0) groups_[static_cast<size_t>(other)].below &= ~bit;
    }
    slot_group_[slot] = group;
    slot_start_[slot] = n;
    return bit;
  }

  void Commit(const std::vector<int32_t>& united, Group group) {
    const int32_t into = united[0];
    for (NodeId member : group.members) group_of_[static_cast<size_t>(member)] = into;
    for (int32_t& slot : slot_group_) {
      if (std::find(united.begin(), united.end(), slot) != united.end()) slot = into;
    }
    for (int32_t old : united) groups_[static_cast<size_t>(old)] = Group{};
    groups_[static_cast<size_t>(into)] = std::move(group);
  }

  NodeId Producer(ValueId id) const { return id == kNoValue ? -1 : graph_.value(id).producer; }

  int32_t GroupOfValue(ValueId id) const {
    const NodeId producer = Producer(id);
    return producer < 0 ? -1 : group_of_[static_cast<size_t>(producer)];
  }

  const Graph& graph_;
  const RewriteRules& rules_;
  const GraphUses uses_;
  std::vector<int32_t> group_of_;  // by node, or -1
  std::vector<Mask> below_;        // by node, for nodes in no group
  std::vector<Group> groups_;
  std::array<int32_t, kSlots> slot_group_;
  std::array<NodeId, kSlots> slot_start_;
  size_t next_slot_ = 0;
};

}  // namespace

std::vector<std::vector<NodeId>> FindFusionGroups(const Graph& graph, const RewriteRules& rules) {
  return GroupFinder(graph, rules).Run();
}

}  // namespace ridge
