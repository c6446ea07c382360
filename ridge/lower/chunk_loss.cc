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

// A dimension of a value that is `blocks` blocks, of each of which a part has a range: the tokens
// of four samples are a dimension of their own, or four blocks of the dimension of all their rows.
struct Cut {
  int axis = 0;
  int64_t blocks = 1;

  auto operator<=>(const Cut&) const = default;
};

Cut InputCut(const Factor& factor, size_t i) { return {factor.inputs[i], factor.input_blocks[i]}; }
Cut OutputCut(const Factor& factor) { return {factor.outputs[0], factor.output_blocks[0]}; }

// The factors of which a part's call is the call with smaller dimensions, each with all its blocks.
Axes CuttableFactors(const Graph& graph, const Node& node) {
  Axes axes = SharedAxesOf(*node.op, graph.Call(node));
  std::erase_if(axes, [](const Factor& factor) {
    return factor.offset_attr != nullptr || factor.divided_attr != nullptr;
  });
  for (Factor& factor : axes) {
    if (factor.input_blocks.empty()) factor.input_blocks.assign(factor.inputs.size(), 1);
    if (factor.output_blocks.empty()) factor.output_blocks.assign(factor.outputs.size(), 1);
  }
  return axes;
}

// An index of whole dimensions cut in blocks of them.
std::optional<Factor> InBlocks(Factor factor, int64_t blocks) {
  if (!IsOneBlock(factor.input_blocks) || !IsOneBlock(factor.output_blocks)) return std::nullopt;
  if (factor.extent % blocks != 0) return std::nullopt;
  factor.input_blocks.assign(factor.inputs.size(), blocks);
  factor.output_blocks.assign(factor.outputs.size(), blocks);
  factor.extent /= blocks;
  return factor;
}

// The factor that cuts a dimension so: one that has its blocks, or one of whole dimensions.
template <typename Cuts>
std::optional<Factor> FindFactor(const Axes& axes, Cut cut, const Cuts& cuts) {
  const auto find = [&](Cut wanted) {
    return std::find_if(axes.begin(), axes.end(),
                        [&](const Factor& factor) { return cuts(factor, wanted); });
  };
  if (const auto found = find(cut); found != axes.end()) return *found;
  const auto whole = find({cut.axis, 1});
  return whole == axes.end() ? std::nullopt : InBlocks(*whole, cut.blocks);
}

// Of a call's input or output; nullopt: it can't be cut so.
std::optional<Factor> FactorOfInput(const Graph& graph, const Node& node, ValueId input, Cut cut) {
  return FindFactor(CuttableFactors(graph, node), cut, [&](const Factor& factor, Cut wanted) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == input && InputCut(factor, i) == wanted) return true;
    }
    return false;
  });
}

std::optional<Factor> FactorOfOutput(const Graph& graph, const Node& node, Cut cut) {
  return FindFactor(CuttableFactors(graph, node), cut,
                    [](const Factor& factor, Cut wanted) { return OutputCut(factor) == wanted; });
}

bool AreCutAlike(const Factor& a, const Factor& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && a.input_blocks == b.input_blocks &&
         a.output_blocks == b.output_blocks;
}

// The dimensions of rows that have more than one: as a rule samples, then tokens.
std::vector<int> DimensionsOfRows(const Dims& dims) {
  std::vector<int> found;
  for (int d = 0; d + 1 < static_cast<int>(dims.size()); ++d) {
    if (dims[static_cast<size_t>(d)] > 1) found.push_back(d);
  }
  return found;
}

// The nodes that read or write logits and what else is as large, with the factor of each that is
// cut.
class Region {
 public:
  Region(const Graph& graph, const GraphUses& uses) : graph_(graph), uses_(uses) {}

  // Grows around the logits of a cross entropy, along one of their DimensionsOfRows.  False: they
  // cannot be cut so.
  bool Find(const Node& loss, size_t nth) {
    const std::vector<int> rows = DimensionsOfRows(graph_.type(loss.inputs[0]).dims);
    elements_ = graph_.type(loss.inputs[0]).elements();
    if (nth >= rows.size() || elements_ == 0) return false;
    logits_ = FromProduct({loss.inputs[0], {rows[nth], 1}});
    if (logits_.value == kNoValue) return false;
    waiting_ = {logits_};
    while (!waiting_.empty()) {
      const Wide next = waiting_.back();
      waiting_.pop_back();
      if (!Take(next)) return false;
    }
    const ValueSet outside = ComputedOutside();
    return std::all_of(factors_.begin(), factors_.end(), [&](const auto& entry) {
      const auto& [id, factor] = entry;
      return ReadsChunks(graph_.node(id), factor, outside) && Joins(graph_.node(id), factor);
    });
  }

  // Whether a part of a value from outside is a range of it, or of what it is a view of.
  bool ShowsRanges(ValueId id, Cut cut) const {
    if (cut.blocks == 1 || ExtentOf(graph_, id, cut.axis) == 1) return true;
    const Node* view = graph_.producer(id, "reshape");
    if (view == nullptr) return false;
    const std::optional<Factor> factor = FactorOfOutput(graph_, *view, cut);
    return factor && factor->extent % rows_ == 0 &&
           ShowsRanges(view->inputs[0], InputCut(*factor, 0));
  }

  int64_t rows() const { return rows_; }
  int64_t bytes() const { return graph_.type(logits_.value).bytes(); }
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
    Cut cut;
  };

  // Shifted labels leave out a column of tokens, and paths of gradients pad them again.
  bool IsWide(ValueId id) const {
    return graph_.producer(id) != nullptr && 2 * graph_.type(id).elements() >= elements_;
  }

  // What the product wrote from which `wide` is made; no value: a product did not.
  Wide FromProduct(Wide wide) const {
    while (const Node* producer = graph_.producer(wide.value)) {
      const std::optional<Factor> factor = FactorOfOutput(graph_, *producer, wide.cut);
      if (!factor) break;
      if (IsProduct(*producer)) return wide;
      const auto& inputs = producer->inputs;
      const auto from = std::find_if(inputs.begin(), inputs.end(),
                                     [this](ValueId id) { return id != kNoValue && IsWide(id); });
      if (from == inputs.end()) break;
      const Cut cut = InputCut(*factor, static_cast<size_t>(from - inputs.begin()));
      if (cut.axis == Factor::kNone) break;
      wide = {*from, cut};
    }
    return {};
  }

  bool Take(const Wide& wide) {
    const auto [known, first] = cuts_.emplace(wide.value, wide.cut);
    if (!first) return known->second == wide.cut;
    if (!uses_.OnlyNodesRead(wide.value)) return false;
    const Node& producer = *graph_.producer(wide.value);
    if (!Add(producer, FactorOfOutput(graph_, producer, wide.cut))) return false;
    for (const NodeId reader : uses_.ReadersOf(wide.value)) {
      const Node& node = graph_.node(reader);
      if (!Add(node, FactorOfInput(graph_, node, wide.value, wide.cut))) return false;
    }
    return true;
  }

  // A node that is cut by this factor.
  bool Add(const Node& node, std::optional<Factor> factor) {
    if (!factor || node.op->draws || node.outputs.size() != 1 || node.op->slices_attr != nullptr)
      return false;
    const auto [known, first] = factors_.emplace(graph_.IdOf(node), *factor);
    if (!first) return AreCutAlike(known->second, *factor);
    const int axis = factor->outputs[0];
    if (axis == Factor::kNone && factor->over != Factor::Over::kSum) return false;
    if (factor->extent != 0) rows_ = std::gcd(rows_, factor->extent);
    if (axis != Factor::kNone) Spread(node.outputs[0], OutputCut(*factor), node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue && factor->inputs[i] != Factor::kNone)
        Spread(node.inputs[i], InputCut(*factor, i), node);
    }
    return true;
  }

  // To a value of `node` with rows.  What else products read and write is not of logits.
  void Spread(ValueId id, Cut cut, const Node& node) {
    const int64_t extent = ExtentOf(graph_, id, cut.axis);
    if (extent != 1) rows_ = std::gcd(rows_, extent % cut.blocks == 0 ? extent / cut.blocks : 1);
    if (IsWide(id) && !IsProduct(node)) waiting_.push_back({id, cut});
  }

  // Whether a chunk of the node reads chunks only of what nodes here make, and nothing of
  // ComputedOutside().
  bool ReadsChunks(const Node& node, const Factor& factor, const ValueSet& outside) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      if (outside[static_cast<size_t>(node.inputs[i])]) return false;
      const Cut cut = InputCut(factor, i);
      const auto made = factors_.find(graph_.value(node.inputs[i]).producer);
      if (made == factors_.end()) {
        if (cut.axis != Factor::kNone && !ShowsRanges(node.inputs[i], cut)) return false;
      } else if (cut.axis == Factor::kNone || cut != OutputCut(made->second)) {
        return false;
      }
    }
    return true;
  }

  // Whether the chunks of a result that nodes outside read are it, one after the other.
  bool Joins(const Node& node, const Factor& factor) const {
    return factor.outputs[0] == Factor::kNone || factor.output_blocks[0] == 1 ||
           !Leaves(node.outputs[0]);
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
  std::map<ValueId, Cut> cuts_;
  std::map<NodeId, Factor> factors_;  // in the order of nodes
};

// The largest logits, to be cut by samples or by tokens.
struct Regions {
  Region by_samples;
  std::optional<Region> by_tokens;

  ChunkableLogits logits() const {
    return {.rows = by_samples.rows(),
            .bytes = by_samples.bytes(),
            .tokens = by_tokens ? by_tokens->rows() : 1};
  }
};

std::optional<Regions> FindRegions(const Graph& graph, const GraphUses& uses) {
  std::optional<Region> largest;
  const Node* loss = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "softmax_cross_entropy") continue;
    Region region(graph, uses);
    if (!region.Find(node, 0)) continue;
    if (largest && region.bytes() <= largest->bytes()) continue;
    largest.emplace(std::move(region));
    loss = &node;
  }
  if (!largest) return std::nullopt;
  Region by_tokens(graph, uses);
  const bool found = by_tokens.Find(*loss, 1);
  return Regions{*std::move(largest), found ? std::optional(std::move(by_tokens)) : std::nullopt};
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
      RIDGE_ASSIGN_OR_RETURN(const ValueId part, PartOf(node.inputs[i], InputCut(factor, i)));
      inputs.push_back(part);
    }
    const ValueId result = node.outputs[0];
    RIDGE_ASSIGN_OR_RETURN(const ValueId part, Make(node, std::move(inputs), factor.outputs[0]));
    now_[{result, OutputCut(factor)}] = part;
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

  // The chunk of an input.
  Result<ValueId> PartOf(ValueId id, Cut cut) {
    const std::pair key(id, cut);
    if (const auto known = now_.find(key); known != now_.end()) return known->second;
    if (id == kNoValue || cut.axis == Factor::kNone || ExtentOf(graph_, id, cut.axis) == 1)
      return Whole(id);
    RIDGE_ASSIGN_OR_RETURN(const ValueId part, MakePartOf(id, cut));
    now_[key] = part;
    return part;
  }

  // A view is one of a chunk of what it shows, where that has ranges too, so that both are cut
  // once.
  Result<ValueId> MakePartOf(ValueId id, Cut cut) {
    if (const Node* view = graph_.producer(id, "reshape")) {
      const std::optional<Factor> factor = FactorOfOutput(graph_, *view, cut);
      if (factor && factor->extent % chunks_ == 0 &&
          region_.ShowsRanges(view->inputs[0], InputCut(*factor, 0))) {
        RIDGE_ASSIGN_OR_RETURN(const ValueId shown, PartOf(view->inputs[0], InputCut(*factor, 0)));
        return Make(*view, {shown}, cut.axis);
      }
    }
    const int64_t count = ExtentOf(graph_, id, cut.axis) / chunks_;
    RIDGE_ASSIGN_OR_RETURN(const ValueId whole, Whole(id));
    return rewriter_.AddNamedNode(*FindOp("slice"), {whole},
                                  SliceAttrsOf({{cut.axis, chunk_ * count, count}}), NameOf(id),
                                  "");
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
  std::map<std::pair<ValueId, Cut>, ValueId> now_;  // parts of this chunk, by old value
  std::map<ValueId, ValueId> sums_;                 // by result
  std::map<ValueId, std::vector<ValueId>> joined_;  // parts by result
};

// Where samples give too many chunks, and tokens come nearer.
bool IsCutByTokens(const ChunkableLogits& logits, int64_t chunks) {
  const int64_t of_samples = DivisorFrom(chunks, logits.rows);
  const int64_t of_tokens = DivisorFrom(chunks, logits.tokens);
  return of_samples > kMostLossChunks && of_tokens >= chunks && of_tokens < of_samples;
}

}  // namespace

int64_t CountOfChunks(const ChunkableLogits& logits, int64_t chunks) {
  return DivisorFrom(chunks, IsCutByTokens(logits, chunks) ? logits.tokens : logits.rows);
}

Result<ChunkedLoss> ChunkLoss(Graph graph, int64_t chunks) {
  const GraphUses uses(graph);
  const std::optional<Regions> regions = FindRegions(graph, uses);
  if (!regions) return ChunkedLoss{std::move(graph), std::nullopt};
  const ChunkableLogits logits = regions->logits();
  const int64_t parts = CountOfChunks(logits, chunks);
  if (parts == 1) return ChunkedLoss{std::move(graph), logits};
  const Region& region = IsCutByTokens(logits, chunks) ? *regions->by_tokens : regions->by_samples;
  RIDGE_ASSIGN_OR_RETURN(Graph chunked, Chunker(graph, region, parts).Run());
  RIDGE_ASSIGN_OR_RETURN(chunked, RemoveDead(std::move(chunked)));  // views of what is cut
  return ChunkedLoss{std::move(chunked), logits};
}

}  // namespace ridge
