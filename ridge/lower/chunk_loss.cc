#include "ridge/lower/chunk_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/graph/axes.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/passes/slice_ranges.h"
#include "ridge/graph/reach.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

bool IsProduct(const Node& node) { return node.op->cost_class == CostClass::kMatmul; }

int64_t ExtentOf(const Graph& graph, ValueId id, int axis) {
  return graph.type(id).dims[static_cast<size_t>(axis)];
}

bool IsOneBlock(const std::vector<int64_t>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](int64_t count) { return count == 1; });
}

// Whether a part of the factor's rows is a range of each of its dimensions, and the call of a part
// is the call with smaller dimensions.
bool CutsIntoRanges(const Factor& factor) {
  return factor.offset_attr == nullptr && factor.divided_attr == nullptr &&
         IsOneBlock(factor.input_blocks) && IsOneBlock(factor.output_blocks);
}

// The factor of which `dimension` of a call's input or output is one; nullopt: of none that can be
// cut.
std::optional<Factor> FactorOfInput(const Graph& graph, const Node& node, ValueId input,
                                    int dimension) {
  for (Factor& factor : SharedAxesOf(*node.op, graph.Call(node))) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == input && factor.inputs[i] == dimension && CutsIntoRanges(factor))
        return std::move(factor);
    }
  }
  return std::nullopt;
}

std::optional<Factor> FactorOfOutput(const Graph& graph, const Node& node, int dimension) {
  for (Factor& factor : SharedAxesOf(*node.op, graph.Call(node))) {
    if (factor.outputs[0] == dimension && CutsIntoRanges(factor)) return std::move(factor);
  }
  return std::nullopt;
}

// The nodes that read or write logits and what else is as large, with the factor of each that is
// cut.
class Region {
 public:
  Region(const Graph& graph, const GraphUses& uses) : graph_(graph), uses_(uses) {}

  // Grows around the logits of a cross entropy.  False: they cannot be cut.
  bool Find(const Node& loss) {
    const Dims& dims = graph_.type(loss.inputs[0]).dims;
    const auto first = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d > 1; });
    elements_ = graph_.type(loss.inputs[0]).elements();
    if (first >= dims.end() - 1 || elements_ == 0) return false;
    logits_ = FromProduct({loss.inputs[0], static_cast<int>(first - dims.begin())});
    if (logits_.value == kNoValue) return false;
    waiting_ = {logits_};
    while (!waiting_.empty()) {
      const Wide next = waiting_.back();
      waiting_.pop_back();
      if (!Take(next)) return false;
    }
    const ValueSet outside = ComputedOutside();
    return std::all_of(factors_.begin(), factors_.end(), [&](const auto& entry) {
      return ReadsChunks(graph_.node(entry.first), entry.second, outside);
    });
  }

  ChunkableLogits size() const { return {rows_, graph_.type(logits_.value).bytes()}; }
  const std::map<NodeId, Factor>& factors() const { return factors_; }
  bool Has(NodeId id) const { return factors_.count(id) > 0; }
  // Whether a node outside reads it.
  bool Leaves(ValueId id) const {
    const auto readers = uses_.ReadersOf(id);
    return !uses_.OnlyNodesRead(id) ||
           std::any_of(readers.begin(), readers.end(), [&](NodeId n) { return !Has(n); });
  }

 private:
  // A value of about as many elements as the logits, and its dimension of rows.
  struct Wide {
    ValueId value = kNoValue;
    int axis = 0;
  };

  // Shifted labels leave out a column of tokens, and paths of gradients pad them again.
  bool IsWide(ValueId id) const {
    return graph_.producer(id) != nullptr && 2 * graph_.type(id).elements() >= elements_;
  }

  // What the product wrote from which `wide` is made; no value: a product did not.
  Wide FromProduct(Wide wide) const {
    while (const Node* producer = graph_.producer(wide.value)) {
      const std::optional<Factor> factor = FactorOfOutput(graph_, *producer, wide.axis);
      if (!factor) break;
      if (IsProduct(*producer)) return wide;
      const auto& inputs = producer->inputs;
      const auto from = std::find_if(inputs.begin(), inputs.end(),
                                     [this](ValueId id) { return id != kNoValue && IsWide(id); });
      if (from == inputs.end()) break;
      const int axis = factor->inputs[static_cast<size_t>(from - inputs.begin())];
      if (axis == Factor::kNone) break;
      wide = {*from, axis};
    }
    return {};
  }

  bool Take(const Wide& wide) {
    const auto [known, first] = axes_.emplace(wide.value, wide.axis);
    if (!first) return known->second == wide.axis;
    if (!uses_.OnlyNodesRead(wide.value)) return false;
    const Node& producer = *graph_.producer(wide.value);
    if (!Add(producer, FactorOfOutput(graph_, producer, wide.axis))) return false;
    for (const NodeId reader : uses_.ReadersOf(wide.value)) {
      const Node& node = graph_.node(reader);
      if (!Add(node, FactorOfInput(graph_, node, wide.value, wide.axis))) return false;
    }
    return true;
  }

  // A node that is cut by this factor.
  bool Add(const Node& node, std::optional<Factor> factor) {
    if (!factor || node.op->draws || node.outputs.size() != 1 || node.op->slices_attr != nullptr)
      return false;
    const auto [known, first] = factors_.emplace(graph_.IdOf(node), *factor);
    if (!first)
      return known->second.inputs == factor->inputs && known->second.outputs == factor->outputs;
    const int axis = factor->outputs[0];
    if (axis == Factor::kNone && factor->over != Factor::Over::kSum) return false;
    if (factor->extent != 0) rows_ = std::gcd(rows_, factor->extent);
    if (axis != Factor::kNone) Spread(node.outputs[0], axis, node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue && factor->inputs[i] != Factor::kNone)
        Spread(node.inputs[i], factor->inputs[i], node);
    }
    return true;
  }

  // To a value of `node` with rows.  What else products read and write is not of logits.
  void Spread(ValueId id, int axis, const Node& node) {
    const int64_t extent = ExtentOf(graph_, id, axis);
    if (extent != 1) rows_ = std::gcd(rows_, extent);
    if (IsWide(id) && !IsProduct(node)) waiting_.push_back({id, axis});
  }

  // Whether a chunk of the node reads chunks only of what nodes here make, and nothing of
  // ComputedOutside().
  bool ReadsChunks(const Node& node, const Factor& factor, const ValueSet& outside) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      if (outside[static_cast<size_t>(node.inputs[i])]) return false;
      const auto made = factors_.find(graph_.value(node.inputs[i]).producer);
      if (made == factors_.end()) continue;
      const int axis = made->second.outputs[0];
      if (axis == Factor::kNone || factor.inputs[i] != axis) return false;
    }
    return true;
  }

  // What nodes outside compute from results.
  ValueSet ComputedOutside() const {
    ValueSet later(graph_.values().size(), false);
    for (const Node& node : graph_.nodes()) {
      if (Has(graph_.IdOf(node))) continue;
      const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
        return id != kNoValue && (Has(graph_.value(id).producer) || later[static_cast<size_t>(id)]);
      });
      for (const ValueId id : node.outputs) later[static_cast<size_t>(id)] = reads;
    }
    return later;
  }

  const Graph& graph_;
  const GraphUses& uses_;
  int64_t elements_ = 0;
  int64_t rows_ = 0;
  Wide logits_;
  std::vector<Wide> waiting_;
  std::map<ValueId, int> axes_;
  std::map<NodeId, Factor> factors_;  // in the order of nodes
};

// The region of the largest logits.
std::optional<Region> FindRegion(const Graph& graph, const GraphUses& uses) {
  std::optional<Region> largest;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "softmax_cross_entropy") continue;
    Region region(graph, uses);
    if (!region.Find(node)) continue;
    if (!largest || region.size().bytes > largest->size().bytes) largest.emplace(region);
  }
  return largest;
}

class Chunker {
 public:
  Chunker(const Graph& graph, const Region& region, int64_t chunks)
      : graph_(graph), region_(region), chunks_(chunks), rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  Status Visit(const Node& node) {
    if (rewriter_.Map(node.outputs[0]) != kNoValue) return Status();  // made before
    if (!region_.Has(graph_.IdOf(node))) return rewriter_.Copy(node);
    return std::exchange(is_made_, true) ? Status() : MakeRegion();
  }

  Status MakeRegion() {
    for (chunk_ = 0; chunk_ < chunks_; ++chunk_) {
      now_.clear();
      for (const auto& [id, factor] : region_.factors())
        RIDGE_RETURN_IF_ERROR(MakePart(graph_.node(id), factor));
    }
    for (const auto& [result, parts] : joined_) {
      const Node& node = *graph_.producer(result);
      const int axis = region_.factors().at(graph_.IdOf(node)).outputs[0];
      RIDGE_RETURN_IF_ERROR(rewriter_.Emit(*FindOp("concat"), parts, {{"axis", int64_t{axis}}},
                                           {result}, node.location));
    }
    return Status();
  }

  // An input from outside, which may be computed behind this place in the old graph.
  Result<ValueId> Whole(ValueId id) {
    const Node* node = id == kNoValue ? nullptr : graph_.producer(id);
    if (node == nullptr || rewriter_.Map(id) != kNoValue) return rewriter_.Use(id);
    for (const ValueId input : node->inputs) RIDGE_RETURN_IF_ERROR(Whole(input).status());
    RIDGE_RETURN_IF_ERROR(rewriter_.Copy(*node));
    return rewriter_.Map(id);
  }

  Status MakePart(const Node& node, const Factor& factor) {
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      RIDGE_ASSIGN_OR_RETURN(const ValueId part, PartOf(node.inputs[i], factor.inputs[i]));
      inputs.push_back(part);
    }
    const ValueId result = node.outputs[0];
    RIDGE_ASSIGN_OR_RETURN(const ValueId part, Make(node, std::move(inputs), factor.outputs[0]));
    now_[{result, factor.outputs[0]}] = part;
    if (!region_.Leaves(result)) return Status();
    if (factor.outputs[0] == Factor::kNone) return AddUp(result, part, node);
    joined_[result].push_back(part);
    return Status();
  }

  Result<ValueId> Make(const Node& node, std::vector<ValueId> inputs, int axis) {
    AttrMap attrs = node.attrs;
    if (node.op->dims_attr != nullptr) {
      Dims dims = graph_.type(node.outputs[0]).dims;
      if (axis != Factor::kNone) dims[static_cast<size_t>(axis)] /= chunks_;
      attrs[node.op->dims_attr] = std::move(dims);
    }
    return rewriter_.AddNamedNode(*node.op, std::move(inputs), std::move(attrs),
                                  NameOf(node.outputs[0]), node.location);
  }

  // NAME.chunk0
  std::string NameOf(ValueId id) const {
    return rewriter_.FreshName(fmt::format("{}.chunk{}", graph_.value(id).name, chunk_));
  }

  // The chunk of an input whose dimension `axis` is cut.
  Result<ValueId> PartOf(ValueId id, int axis) {
    const std::pair key(id, axis);
    if (const auto known = now_.find(key); known != now_.end()) return known->second;
    if (id == kNoValue || axis == Factor::kNone || ExtentOf(graph_, id, axis) == 1)
      return Whole(id);
    RIDGE_ASSIGN_OR_RETURN(const ValueId part, Cut(id, axis));
    now_[key] = part;
    return part;
  }

  // A view is one of a chunk of what it shows, so that both are cut once.
  Result<ValueId> Cut(ValueId id, int axis) {
    if (const Node* view = graph_.producer(id, "reshape")) {
      const std::optional<Factor> factor = FactorOfOutput(graph_, *view, axis);
      if (factor && factor->extent % chunks_ == 0) {
        RIDGE_ASSIGN_OR_RETURN(const ValueId shown, PartOf(view->inputs[0], factor->inputs[0]));
        return Make(*view, {shown}, axis);
      }
    }
    const int64_t count = ExtentOf(graph_, id, axis) / chunks_;
    RIDGE_ASSIGN_OR_RETURN(const ValueId whole, Whole(id));
    return rewriter_.AddNamedNode(*FindOp("slice"), {whole},
                                  SliceAttrsOf({{axis, chunk_ * count, count}}), NameOf(id), "");
  }

  // The sum of the chunks so far; that of the last is the result.
  Status AddUp(ValueId result, ValueId part, const Node& node) {
    const OpDef& add = *FindOp("add");
    ValueId& sum = sums_[result];
    if (chunk_ == 0) {
      sum = part;
      return Status();
    }
    if (chunk_ + 1 == chunks_) return rewriter_.Emit(add, {sum, part}, {}, {result}, node.location);
    const std::string name =
        rewriter_.FreshName(fmt::format("{}.sum{}", graph_.value(result).name, chunk_));
    RIDGE_ASSIGN_OR_RETURN(sum, rewriter_.AddNamedNode(add, {sum, part}, {}, name, node.location));
    return Status();
  }

  const Graph& graph_;
  const Region& region_;
  const int64_t chunks_;
  GraphRewriter rewriter_;
  bool is_made_ = false;
  int64_t chunk_ = 0;
  std::map<std::pair<ValueId, int>, ValueId> now_;  // parts of this chunk, by old value and axis
  std::map<ValueId, ValueId> sums_;                 // by result
  std::map<ValueId, std::vector<ValueId>> joined_;  // parts by result
};

}  // namespace

Result<ChunkedLoss> ChunkLoss(Graph graph, int64_t chunks) {
  const GraphUses uses(graph);
  const std::optional<Region> region = FindRegion(graph, uses);
  if (!region) return ChunkedLoss{std::move(graph), std::nullopt};
  const ChunkableLogits logits = region->size();
  const int64_t parts = DivisorFrom(chunks, logits.rows);
  if (parts == 1) return ChunkedLoss{std::move(graph), logits};
  RIDGE_ASSIGN_OR_RETURN(Graph chunked, Chunker(graph, *region, parts).Run());
  RIDGE_ASSIGN_OR_RETURN(chunked, RemoveDead(std::move(chunked)));  // views of what is cut
  return ChunkedLoss{std::move(chunked), logits};
}

}  // namespace ridge
