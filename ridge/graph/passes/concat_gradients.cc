// slice_grad(a) + slice_grad(b) + .. + rest -> concat(a, b, ..) + rest
//
// A value that is cut into parts (the gates of a recurrent step, q, k and v of one product, the
// steps of a sequence) gets a gradient from each part, every one as large as the whole and mostly
// zeros.  If the parts tile one axis, their sum is their concatenation: n parts cost one copy
// instead of n^2.
//
// Known weakness: parts that leave a gap, or tile along two axes, remain a sum.
#include "ridge/graph/passes/concat_gradients.h"

#include <algorithm>
#include <map>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/passes/slice_ranges.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

// A sum of terms of one type, some of which tile an axis.
struct TiledSum {
  int64_t axis = 0;
  std::vector<ValueId> parts;  // in order along the axis
  std::vector<ValueId> rest;   // in order of the sum
};

struct Part {
  Rows rows;
  ValueId dy = kNoValue;
};

class SliceSumFinder {
 public:
  explicit SliceSumFinder(const Graph& graph) : graph_(graph), uses_(graph) {}

  // By the node that ends the sum.
  std::map<const Node*, TiledSum> Run() {
    std::map<const Node*, TiledSum> found;
    std::vector<bool> inner(graph_.nodes().size(), false);
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (node.op->name != "add" || inner[n]) continue;
      const std::vector<ValueId> terms = Terms(node, inner);
      if (std::optional<TiledSum> sum = Tile(terms, graph_.type(node.outputs[0]).dims))
        found.emplace(&node, *std::move(sum));
    }
    return found;
  }

 private:
  // The producer, of this operator, of a value that is read once.
  const Node* Producer(ValueId id, const char* op) const {
    return uses_.IsReadOnce(id) ? graph_.producer(id, op) : nullptr;
  }

  // What is added up in `root`; adds that only this sum reads are marked as inner.
  std::vector<ValueId> Terms(const Node& root, std::vector<bool>& inner) const {
    const TensorType& type = graph_.type(root.outputs[0]);
    std::vector<ValueId> terms, open = {root.inputs[1], root.inputs[0]};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const Node* add = graph_.type(id) == type ? Producer(id, "add") : nullptr;
      if (add == nullptr) {
        terms.push_back(id);
        continue;
      }
      inner[static_cast<size_t>(graph_.IdOf(*add))] = true;
      open.push_back(add->inputs[1]);
      open.push_back(add->inputs[0]);
    }
    return terms;
  }

  std::optional<Part> PartOf(ValueId term, const Dims& dims) const {
    const Node* grad = Producer(term, "slice_grad");
    if (grad == nullptr || graph_.type(term).dims != dims) return {};
    const auto ranges = SliceRows(grad->attrs, dims);
    if (!ranges || ranges->size() != 1) return {};
    return Part{ranges->front(), grad->inputs[0]};
  }

  // All slices along the axis of the first must tile it.
  std::optional<TiledSum> Tile(const std::vector<ValueId>& terms, const Dims& dims) const {
    TiledSum sum;
    std::vector<Part> parts;
    for (ValueId term : terms) {
      const std::optional<Part> part = PartOf(term, dims);
      if (part && (parts.empty() || part->rows.axis == parts[0].rows.axis)) {
        parts.push_back(*part);
      } else {
        sum.rest.push_back(term);
      }
    }
    if (parts.empty()) return {};
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.rows.first < b.rows.first; });
    int64_t end = 0;
    for (const Part& part : parts) {
      if (part.rows.first != end) return {};
      end = part.rows.end();
      sum.parts.push_back(part.dy);
    }
    sum.axis = parts[0].rows.axis;
    if (end != dims[static_cast<size_t>(sum.axis)]) return {};
    return sum;
  }

  const Graph& graph_;
  const GraphUses uses_;
};

Status EmitSum(const Node& root, const TiledSum& sum, GraphRewriter& rewriter) {
  const OpDef &concat = *FindOp("concat"), &add = *FindOp("add");
  const AttrMap axis = {{"axis", sum.axis}};
  if (sum.rest.empty())
    return rewriter.Emit(concat, rewriter.Map(sum.parts), axis, root.outputs, root.location);
  const std::string name = rewriter.from().value(root.outputs[0]).name;
  RIDGE_ASSIGN_OR_RETURN(ValueId total,
                         rewriter.AddNamedNode(concat, rewriter.Map(sum.parts), axis,
                                               rewriter.FreshName(name + ".parts"), root.location));
  for (size_t i = 0; i + 1 < sum.rest.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(total,
                           rewriter.AddNamedNode(add, {total, rewriter.Map(sum.rest[i])}, {},
                                                 rewriter.FreshName(name + ".sum"), root.location));
  }
  return rewriter.Emit(add, {total, rewriter.Map(sum.rest.back())}, {}, root.outputs,
                       root.location);
}

}  // namespace

Result<Graph> ConcatSliceGradients(Graph graph) {
  const std::map<const Node*, TiledSum> sums = SliceSumFinder(graph).Run();
  if (sums.empty()) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    const auto found = sums.find(&node);
    return found == sums.end() ? rewriter.Copy(node) : EmitSum(node, found->second, rewriter);
  }));
  RIDGE_ASSIGN_OR_RETURN(Graph joined, rewriter.Finish());
  return RemoveDead(std::move(joined));
}

}  // namespace ridge
