// One walk in node order.  At each node the axes are given to letters, an axis once and the first
// claim wins:
//
//   where the variable that is updated is stored     nodes of an optimizer
//   where a weight is cut                            products
//   nothing: the axis stays pending                  sums of values that are pending all
//   where all operands with a letter are cut        nothing has to move
//   the result's proposal, then operands as they lie, then weights
//
// Operands are moved to where their letters are, results are pending by the axes of letters that
// they lack.  A moved value is kept for other readers.
#include "ridge/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/reach.h"
#include "ridge/graph/uses.h"
#include "ridge/graph/verify.h"
#include "ridge/partition/letters.h"
#include "ridge/partition/reshard.h"
#include "ridge/partition/update_path.h"

namespace ridge {
namespace {

using Over = Factor::Over;

const char* ReduceName(Over over) {
  if (over == Over::kMax) return "max";
  return over == Over::kMin ? "min" : "sum";
}

// The axes of one node: cuts of its letters, and axes by which operands stay pending.
struct Assignment {
  std::vector<LetterCut> cuts;
  std::vector<int> pending;

  bool Has(int axis) const {
    return std::find(pending.begin(), pending.end(), axis) != pending.end() ||
           std::any_of(cuts.begin(), cuts.end(),
                       [axis](const LetterCut& c) { return c.axis == axis; });
  }
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const Layout& layout, const Mesh& mesh)
      : graph_(graph), layout_(layout), mesh_(mesh), weight_(FindWeights(graph)), uses_(graph) {
    result_.mesh = mesh;
    result_.local.name = graph.name;
    result_.local.Reserve(graph.values().size());
  }

  Result<Partitioned> Run() {
    RIDGE_RETURN_IF_ERROR(CheckLayout(layout_.use));
    RIDGE_RETURN_IF_ERROR(CheckLayout(layout_.stored));
    Proposal proposal = Propagate(graph_, layout_, mesh_);
    result_.rounds = proposal.rounds;
    proposed_ = std::move(proposal.splits);
    PlaceLeaves();
    path_ = FindUpdatePath(graph_, now_);
    const ValueSet forward = Ancestors(graph_, OutputValues(graph_));
    for (const Node& node : graph_.nodes()) {
      backward_ = std::none_of(node.outputs.begin(), node.outputs.end(),
                               [&](ValueId id) { return forward[static_cast<size_t>(id)]; });
      RIDGE_RETURN_IF_ERROR(Visit(node));
    }
    RIDGE_RETURN_IF_ERROR(Finish());
    result_.splits = std::move(now_);
    return std::move(result_);
  }

 private:
  struct Copy {
    Split split;
    ValueId local;
    bool again = false;  // gathered for the backward pass
  };

  Graph& local() { return result_.local; }
  const Split& Now(ValueId id) const { return now_[static_cast<size_t>(id)]; }

  Status CheckLayout(const std::map<ValueId, Split>& splits) const {
    for (const auto& [id, split] : splits) {
      Split before;
      for (const Cut& cut : split.cuts) {
        const ValueInfo& info = graph_.value(id);
        if (!CanCut(info.type.dims, before, cut, mesh_)) {
          return Status(ErrorCode::kInvalidArgument,
                        fmt::format("{}: '{}' is {} and can't lie as {} on {}: each cut extent "
                                    "must be a multiple of its axis. hint: choose sizes that "
                                    "divide it",
                                    graph_.name, info.name, TypeToString(info.type),
                                    SplitText(split, info.type.rank(), mesh_), MeshText(mesh_)));
        }
        before.Add(cut);
      }
    }
    return Status();
  }

  TensorType LocalType(ValueId id, const Split& split) const {
    const TensorType& type = graph_.type(id);
    return {type.dtype, LocalDims(type.dims, split, mesh_)};
  }

  void PlaceLeaves() {
    now_.resize(graph_.values().size());
    copies_.resize(graph_.values().size());
    for (size_t v = 0; v < graph_.values().size(); ++v) {
      const ValueInfo& info = graph_.values()[v];
      const auto id = static_cast<ValueId>(v);
      if (info.kind == ValueKind::kResult) continue;
      const auto stored = layout_.stored.find(id);
      now_[v] = stored != layout_.stored.end() ? stored->second : proposed_[v];
      ValueInfo leaf = info;
      leaf.type = LocalType(id, now_[v]);
      if (leaf.type != info.type && info.kind != ValueKind::kInput) leaf.init = Init::Zeros();
      copies_[v] = {{now_[v], local().AddLeaf(std::move(leaf))}};
    }
  }

  // ---- axes of a node

  void Take(const Letters& letters, Assignment& to, Slot slot, const std::vector<Cut>& cuts) const {
    for (const Cut& cut : cuts) {
      const std::optional<LetterCut> found = letters.Find(slot, cut);
      if (!found || to.Has(found->axis)) continue;
      const bool fits = std::all_of(letters.slots().begin(), letters.slots().end(), [&](Slot s) {
        const std::optional<Cut> own = letters.CutOf(s, *found);
        return !own || CanCut(letters.DimsOf(s), letters.SplitOf(s, to.cuts), *own, mesh_);
      });
      if (fits) to.cuts.push_back(*found);
    }
  }

  bool IsProduct(const Node& node) const {
    return node.op->cost_class == CostClass::kMatmul || node.op->cost_class == CostClass::kConv;
  }

  bool IsWeight(ValueId id) const { return weight_[static_cast<size_t>(id)]; }

  Assignment Assign(const Node& node, const Letters& letters) const {
    Assignment to;
    const Slot result{true, 0};
    const auto n = static_cast<size_t>(graph_.IdOf(node));
    Take(letters, to, result, path_.nodes[n]);
    const auto operands = [&](bool weights, bool proposed) {
      for (Slot slot : letters.slots()) {
        if (slot.is_output || IsWeight(ValueAt(node, slot)) != weights) continue;
        const ValueId id = ValueAt(node, slot);
        Take(letters, to, slot, proposed ? proposed_[static_cast<size_t>(id)].cuts : Now(id).cuts);
      }
    };
    if (path_.has[n]) operands(/*weights=*/true, /*proposed=*/false);
    if (IsProduct(node)) operands(/*weights=*/true, /*proposed=*/true);
    for (int a = 0; a < static_cast<int>(mesh_.axes.size()); ++a)
      if (!to.Has(a) && StaysPending(node, a)) to.pending.push_back(a);
    if (path_.has[n]) return to;
    TakeAgreed(node, letters, to);
    for (size_t k = 0; k < node.outputs.size(); ++k)
      Take(letters, to, {true, k}, proposed_[static_cast<size_t>(node.outputs[k])].cuts);
    operands(/*weights=*/false, /*proposed=*/false);
    operands(/*weights=*/true, /*proposed=*/true);
    return to;
  }

  const std::vector<Cut>& CutsOfOperand(ValueId id) const {
    return IsWeight(id) ? proposed_[static_cast<size_t>(id)].cuts : Now(id).cuts;
  }

  void TakeAgreed(const Node& node, const Letters& letters, Assignment& to) const {
    for (Slot first : letters.slots()) {
      if (first.is_output) continue;
      for (const Cut& cut : CutsOfOperand(ValueAt(node, first))) {
        const std::optional<LetterCut> letter = letters.Find(first, cut);
        if (!letter) continue;
        size_t operands = 0;
        const bool agreed =
            std::all_of(letters.slots().begin(), letters.slots().end(), [&](Slot slot) {
              const std::optional<Cut> own = letters.CutOf(slot, *letter);
              if (slot.is_output || !own) return true;
              ++operands;
              const std::vector<Cut>& cuts = CutsOfOperand(ValueAt(node, slot));
              return std::find(cuts.begin(), cuts.end(), *own) != cuts.end();
            });
        if (agreed && operands > 1) Take(letters, to, first, {cut});
      }
    }
  }

  // Whether the node may work on summands: it is linear in what is pending, makes no more of it
  // than there is, and is the only one that reads it, or it would be summed again for the others.
  bool StaysPending(const Node& node, int axis) const {
    const int64_t bytes = graph_.type(node.outputs[0]).bytes();
    size_t pending = 0, first = node.inputs.size();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) return false;
      const PendingAxis* p = Now(node.inputs[i]).PendingBy(axis);
      if (p == nullptr) continue;
      const TensorType& type = graph_.type(node.inputs[i]);
      if (p->over != Over::kSum || !IsFloat(type.dtype) || bytes > type.bytes()) return false;
      if (!uses_.IsReadOnce(node.inputs[i])) return false;
      if (pending++ == 0) first = i;
    }
    if (pending == 0 || !IsFloat(graph_.type(node.outputs[0]).dtype)) return false;
    switch (node.op->linear) {
      case Linear::kNo:
        return false;
      case Linear::kJointly:
        return pending == node.inputs.size() || IsSumOfNumbers(node);
      case Linear::kFirst:
        return pending == 1 && first == 0;
      case Linear::kEach:
        return pending == 1;
    }
    return false;
  }

  // Of a number that is pending and one that is not each device adds its share of the latter: sums
  // of many numbers, such as the norm of all gradients, are complete at their end.
  bool IsSumOfNumbers(const Node& node) const {
    return node.op->name == "add" && graph_.type(node.outputs[0]).rank() == 0;
  }

  // ---- nodes

  Status Visit(const Node& node) {
    const Letters letters(*node.op, graph_.Call(node), mesh_);
    const Assignment axes = Assign(node, letters);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) {
        inputs.push_back(kNoValue);
        continue;
      }
      RIDGE_ASSIGN_OR_RETURN(const ValueId at,
                             Operand(node, i, OperandSplit(node, letters, axes, i), axes));
      inputs.push_back(at);
    }
    RIDGE_RETURN_IF_ERROR(ShiftDraws(node, letters, axes, inputs));
    RIDGE_RETURN_IF_ERROR(AddLocalNode(node, letters, axes, std::move(inputs)));
    for (ValueId id : node.outputs) RIDGE_RETURN_IF_ERROR(Settle(id));
    return Status();
  }

  Result<ValueId> Operand(const Node& node, size_t i, const Split& want, const Assignment& axes) {
    const ValueId id = node.inputs[i];
    RIDGE_ASSIGN_OR_RETURN(const ValueId at, Moved(id, want));
    int64_t ranks = 1;
    for (int axis : axes.pending)
      if (IsSumOfNumbers(node) && want.PendingBy(axis) == nullptr) ranks *= mesh_.size(axis);
    return ranks == 1 ? Result<ValueId>(at) : ShareOf(ranks, at, graph_.value(id).name + ".share");
  }

  Split OperandSplit(const Node& node, const Letters& letters, const Assignment& axes,
                     size_t i) const {
    Split want = letters.SplitOf({false, i}, axes.cuts);
    for (int axis : axes.pending)
      if (const PendingAxis* p = Now(node.inputs[i]).PendingBy(axis)) want.AddPending(*p);
    return want;
  }

  Split ResultSplit(const Letters& letters, const Assignment& axes, size_t k) const {
    Split split = letters.SplitOf({true, k}, axes.cuts);
    for (int axis : axes.pending) split.AddPending({axis, Over::kSum});
    for (const LetterCut& cut : axes.cuts) {
      const Factor& factor = letters.factors()[cut.letter];
      if (factor.over == Over::kNothing || factor.outputs[k] != Factor::kNone) continue;
      split.AddPending({cut.axis, factor.over == Over::kMean ? Over::kSum : factor.over});
    }
    return split;
  }

  // The devices over which a mean is taken.
  int64_t MeanRanks(const Letters& letters, const Assignment& axes) const {
    int64_t ranks = 1;
    for (const LetterCut& cut : axes.cuts) {
      if (letters.factors()[cut.letter].over == Over::kMean) ranks *= mesh_.size(cut.axis);
    }
    return ranks;
  }

  AttrMap LocalAttrs(const Node& node, const Letters& letters, const Assignment& axes) const {
    AttrMap attrs = node.attrs;
    for (const LetterCut& cut : axes.cuts) {
      if (const char* divided = letters.factors()[cut.letter].divided_attr)
        attrs[divided] = attrs.integer(divided) / mesh_.size(cut.axis);
    }
    const Split split = ResultSplit(letters, axes, 0);
    if (node.op->dims_attr != nullptr && !split.cuts.empty())
      attrs[node.op->dims_attr] = LocalType(node.outputs[0], split).dims;
    return attrs;
  }

  Status AddLocalNode(const Node& node, const Letters& letters, const Assignment& axes,
                      std::vector<ValueId> inputs) {
    const int64_t ranks = MeanRanks(letters, axes);
    std::vector<std::string> names;
    for (ValueId id : node.outputs)
      names.push_back(
          local().UniqueName(graph_.value(id).name + (ranks == 1 ? "" : ".mean_of_part")));
    RIDGE_ASSIGN_OR_RETURN(const NodeId added, local().AddNode(*node.op, std::move(inputs),
                                                               LocalAttrs(node, letters, axes),
                                                               std::move(names), node.location));
    const std::vector<ValueId> outputs = local().node(added).outputs;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id = node.outputs[k];
      ValueId at = outputs[k];
      if (ranks != 1) {
        RIDGE_ASSIGN_OR_RETURN(at, ShareOf(ranks, at, graph_.value(id).name));
      }
      RIDGE_RETURN_IF_ERROR(Place(id, ResultSplit(letters, axes, k), at));
    }
    return Status();
  }

  Status Place(ValueId id, Split split, ValueId at) {
    if (local().type(at) != LocalType(id, split)) {
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{}: '{}' would be {} on a device, not {}", graph_.name,
                                graph_.value(id).name, TypeToString(local().type(at)),
                                TypeToString(LocalType(id, split))));
    }
    local().mutable_value(at).role = graph_.value(id).role;
    copies_[static_cast<size_t>(id)] = {{split, at}};
    now_[static_cast<size_t>(id)] = std::move(split);
    return Status();
  }

  // x / ranks: no float has 1 / 3.
  Result<ValueId> ShareOf(int64_t ranks, ValueId x, const std::string& name) {
    const DType dtype = local().type(x).dtype;
    Tensor number({dtype, {}});
    StoreFromDouble(dtype, number.mutable_data(), 0, static_cast<double>(ranks));
    const ValueId constant = local().AddConstant(local().UniqueName("ranks"), std::move(number));
    return AddOne(*FindOp("div"), {x, constant}, {}, name);
  }

  Result<ValueId> AddOne(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                         const std::string& name) {
    RIDGE_ASSIGN_OR_RETURN(
        const NodeId node,
        local().AddNode(op, std::move(inputs), std::move(attrs), {local().UniqueName(name)}));
    return local().node(node).outputs[0];
  }

  // Random numbers are those of the samples that a device has: rng[2] counts from its first.
  Status ShiftDraws(const Node& node, const Letters& letters, const Assignment& axes,
                    std::vector<ValueId>& inputs) {
    if (!node.op->draws) return Status();
    for (const LetterCut& cut : axes.cuts) {
      const int64_t rows = letters.call().outputs[0].dims[0] / mesh_.size(cut.axis);
      const std::string& name = mesh_.axes[static_cast<size_t>(cut.axis)].name;
      Tensor step({DType::kI64, {3}});
      step.as_mutable<int64_t>()[0] = step.as_mutable<int64_t>()[1] = 0;
      step.as_mutable<int64_t>()[2] = rows;
      const ValueId each = local().AddConstant(local().UniqueName("rows"), std::move(step));
      RIDGE_ASSIGN_OR_RETURN(
          const ValueId before,
          AddOne(*FindOp("mul"), {each, Coordinate(cut.axis)}, {}, "rows_before." + name));
      RIDGE_ASSIGN_OR_RETURN(inputs.back(),
                             AddOne(*FindOp("add"), {inputs.back(), before}, {}, "rng." + name));
    }
    return Status();
  }

  // A result goes where its annotation says; a gradient that is pending, where its update needs it.
  Status Settle(ValueId id) {
    Split want = Now(id);
    const auto annotated = layout_.use.find(id);
    if (annotated != layout_.use.end()) {
      want = annotated->second;
    } else {
      for (const Cut& cut : path_.gradients[static_cast<size_t>(id)]) {
        if (want.PendingBy(cut.axis) == nullptr) continue;
        Split without = want;
        without.Remove(cut.axis);
        if (!CanCut(graph_.type(id).dims, without, cut, mesh_)) continue;
        without.Add(cut);
        want = std::move(without);
      }
    }
    if (want == Now(id)) return Status();
    RIDGE_RETURN_IF_ERROR(Moved(id, want).status());
    now_[static_cast<size_t>(id)] = std::move(want);
    return Status();
  }

  // ---- moves

  // Parameters that are stored in parts are gathered for the forward pass and again for the
  // backward pass: between them no device has them.
  bool IsGatheredAgain(size_t v) const {
    const auto id = static_cast<ValueId>(v);
    const Node* view = graph_.producer(id);
    if (view != nullptr && view->op->alias_input >= 0)
      return IsGatheredAgain(static_cast<size_t>(view->inputs[0]));
    return graph_.value(id).kind == ValueKind::kParameter && layout_.stored.contains(id);
  }

  void AddCopy(size_t v, const Split& split, ValueId at) {
    const bool again = backward_ && IsGatheredAgain(v);
    copies_[v].push_back({split, at, again});
    if (again) local().mutable_value(at).role = ValueRole::kRecomputed;
  }

  Result<ValueId> Moved(ValueId id, const Split& want) {
    const size_t v = static_cast<size_t>(id);
    if (std::optional<ValueId> known = Known(v, want)) return *known;
    if (const std::optional<Split> source = SourceOfView(id, want))
      return ViewOf(id, *source, want);
    ValueId at = *Known(v, now_[v]);
    for (const Move& move : MovesBetween(graph_.type(id).dims, now_[v], want, mesh_)) {
      if (std::optional<ValueId> known = Known(v, move.after)) {
        at = *known;
        continue;
      }
      RIDGE_ASSIGN_OR_RETURN(at, AddMove(id, at, move));
      AddCopy(v, move.after, at);
    }
    return at;
  }

  // What a view shows is moved before it, where the same may be there already for other readers.
  std::optional<Split> SourceOfView(ValueId id, const Split& want) const {
    const Node* node = graph_.producer(id);
    if (node == nullptr || node->op->alias_input < 0 || node->inputs.size() != 1)
      return std::nullopt;
    const Letters letters(*node->op, graph_.Call(*node), mesh_);
    Split source;
    for (const Cut& cut : want.cuts) {
      const std::optional<LetterCut> letter = letters.Find({true, 0}, cut);
      const std::optional<Cut> before =
          letter ? letters.CutOf({false, 0}, *letter) : std::optional<Cut>();
      if (!before || !CanCut(letters.DimsOf({false, 0}), source, *before, mesh_))
        return std::nullopt;
      source.Add(*before);
    }
    for (const PendingAxis& p : want.pending) {
      if (Now(node->inputs[0]).PendingBy(p.axis) == nullptr) return std::nullopt;
      source.AddPending(p);
    }
    return source;
  }

  Result<ValueId> ViewOf(ValueId id, const Split& source, const Split& want) {
    const Node& node = *graph_.producer(id);
    RIDGE_ASSIGN_OR_RETURN(const ValueId from, Moved(node.inputs[0], source));
    AttrMap attrs = node.attrs;
    if (node.op->dims_attr != nullptr) attrs[node.op->dims_attr] = LocalType(id, want).dims;
    RIDGE_ASSIGN_OR_RETURN(const ValueId at, AddOne(*node.op, {from}, std::move(attrs),
                                                    graph_.value(id).name + ".moved"));
    local().mutable_value(at).role = graph_.value(id).role;
    AddCopy(static_cast<size_t>(id), want, at);
    return at;
  }

  std::optional<ValueId> Known(size_t v, const Split& split) const {
    const bool again = backward_ && IsGatheredAgain(v);
    for (const Copy& copy : copies_[v]) {
      const bool given = &copy == copies_[v].data();  // not moved
      if (copy.split == split && (given || copy.again == again)) return copy.local;
    }
    return std::nullopt;
  }

  ValueId Coordinate(int axis) {
    const std::string name = CoordinateInput(mesh_.axes[static_cast<size_t>(axis)].name);
    const ValueId found = local().FindValue(name);
    return found != kNoValue ? found : local().AddInput(name, {DType::kI64, {}});
  }

  Result<ValueId> AddMove(ValueId id, ValueId from, const Move& move) {
    const MeshAxis& axis = mesh_.axes[static_cast<size_t>(move.axis)];
    AttrMap attrs = {{"axis", axis.name}, {"ranks", axis.size}};
    const auto cut_to = [&](const char* dim, const char* blocks, const Cut& cut, const Split& in) {
      attrs[dim] = static_cast<int64_t>(cut.dim);
      attrs[blocks] = LocalBlocks(in, cut, mesh_);
    };
    std::vector<ValueId> inputs = {from};
    const OpDef* op = nullptr;
    switch (move.kind) {
      case Move::Kind::kAllReduce:
        op = &AllReduceOp();
        attrs["reduce"] = std::string(ReduceName(move.over));
        break;
      case Move::Kind::kReduceScatter:
        op = &ReduceScatterOp();
        attrs["reduce"] = std::string(ReduceName(move.over));
        cut_to("dim", "blocks", move.to, move.after);
        break;
      case Move::Kind::kAllGather:
        op = &AllGatherOp();
        cut_to("dim", "blocks", move.from, move.before);
        break;
      case Move::Kind::kAllToAll:
        op = &AllToAllOp();
        cut_to("dim", "blocks", move.to, move.after);
        cut_to("from_dim", "from_blocks", move.from, move.before);
        break;
      case Move::Kind::kLocalPart:
        op = &LocalPartOp();
        cut_to("dim", "blocks", move.to, move.after);
        inputs.push_back(Coordinate(move.axis));
        break;
    }
    RIDGE_ASSIGN_OR_RETURN(
        const ValueId moved,
        AddOne(*op, std::move(inputs), std::move(attrs),
               fmt::format("{}.{}.{}", graph_.value(id).name, op->name, axis.name)));
    local().mutable_value(moved).role = graph_.value(id).role;
    if (IsCollective(*op))
      result_.collectives.push_back(DescribeCollective(local(), *local().producer(moved)));
    return moved;
  }

  // A new content as the variable is stored; where that is pending and this is not, in equal
  // shares.
  Result<ValueId> Stored(ValueId id, const Split& stored) {
    Split want = stored;
    int64_t ranks = 1;
    for (const PendingAxis& p : stored.pending) {
      if (Now(id).PendingBy(p.axis) != nullptr) continue;
      want.Remove(p.axis);
      ranks *= mesh_.size(p.axis);
    }
    RIDGE_ASSIGN_OR_RETURN(const ValueId at, Moved(id, want));
    if (ranks == 1) return at;
    return ShareOf(ranks, at, graph_.value(id).name + ".share");
  }

  Status Finish() {
    for (const GraphOutput& output : graph_.outputs()) {
      const auto annotated = layout_.outputs.find(output.name);
      const Split want = annotated == layout_.outputs.end() ? Split() : annotated->second;
      RIDGE_ASSIGN_OR_RETURN(const ValueId at, Moved(output.value, want));
      local().AddOutput(output.name, at);
    }
    for (const GraphUpdate& update : graph_.updates()) {
      RIDGE_ASSIGN_OR_RETURN(const ValueId at, Stored(update.value, Now(update.variable)));
      local().AddUpdate(copies_[static_cast<size_t>(update.variable)][0].local, at);
    }
    return CheckGraph(local());
  }

  const Graph& graph_;
  const Layout& layout_;
  const Mesh& mesh_;
  const std::vector<bool> weight_;
  const GraphUses uses_;
  std::vector<Split> proposed_;            // by value
  std::vector<Split> now_;                 // by value: as it is computed, given or stored
  std::vector<std::vector<Copy>> copies_;  // by value: all forms that it has been brought to
  UpdatePath path_;
  bool backward_ = false;  // the outputs do not need the node that is visited
  Partitioned result_;
};

}  // namespace

Result<Partitioned> Partition(const Graph& graph, const Layout& layout, const Mesh& mesh) {
  return Partitioner(graph, layout, mesh).Run();
}

std::vector<CollectiveSum> SumCollectives(const std::vector<MeshCollective>& collectives) {
  std::vector<CollectiveSum> sums;
  for (const MeshCollective& c : collectives) {
    auto found = std::find_if(sums.begin(), sums.end(), [&](const CollectiveSum& s) {
      return s.op == c.op && s.axis == c.axis;
    });
    if (found == sums.end()) found = sums.insert(sums.end(), {c.op, c.axis});
    ++found->count;
    found->bytes += c.bytes;
    found->sent_bytes += c.sent_bytes;
  }
  return sums;
}

}  // namespace ridge
