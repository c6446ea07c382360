// Batch norm takes its variance from centered elements, as the operator does: a sum of squares less
// the square of a sum would lose digits in f32.
#include "ridge/partition/normal_form.h"

#include <numeric>

#include "ridge/graph/builder.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr size_t kMatmulBias = 2;

bool IsPlainSum(const Graph& graph, ValueId id) {
  const Node* node = graph.producer(id, "add");
  return node != nullptr && graph.type(node->inputs[0]) == graph.type(id) &&
         graph.type(node->inputs[1]) == graph.type(id);
}

bool HasNoEpilogue(const Node& node) { return node.attrs.text("epilogue").empty(); }

class NormalFormer {
 public:
  explicit NormalFormer(const Graph& from)
      : from_(from), uses_(from), b_(from.name), map_(from.values().size(), kNoValue) {
    b_.graph().Reserve(from.values().size());
  }

  Result<Graph> Run() {
    for (size_t v = 0; v < from_.values().size(); ++v) {
      const ValueInfo& info = from_.values()[v];
      FreeName(info.name);
      if (info.kind != ValueKind::kResult) {
        map_[v] = b_.graph().AddLeaf(info);
      } else if (info.output_index == 0) {
        RIDGE_RETURN_IF_ERROR(Visit(from_.node(info.producer)));
      }
    }
    for (const GraphOutput& output : from_.outputs()) b_.Output(output.name, At(output.value));
    for (const GraphUpdate& update : from_.updates())
      b_.Update(At(update.variable), At(update.value));
    return std::move(b_).Build();
  }

 private:
  Value At(ValueId id) { return b_.At(id == kNoValue ? kNoValue : map_[static_cast<size_t>(id)]); }

  // The names of `from` stay; what was added in between gives way.
  void FreeName(const std::string& name) {
    const ValueId added = b_.graph().FindValue(name);
    if (added != kNoValue) b_.graph().Rename(added, b_.graph().UniqueName(name + ".form"));
  }

  bool IsEmpty(const Node& node) const { return from_.type(node.inputs[0]).elements() == 0; }

  const std::string& NameOf(const Node& node, size_t k = 0) const {
    return from_.value(node.outputs[k]).name;
  }

  void Set(const Node& node, size_t k, Value value) {
    if (k >= node.outputs.size() || !value.valid()) return;
    map_[static_cast<size_t>(node.outputs[k])] = value.id;
    b_.graph().mutable_value(value.id).role = from_.value(node.outputs[k]).role;
  }

  Status Visit(const Node& node) {
    b_.set_location(node.location);
    const std::string& op = node.op->name;
    if (op == "matmul" && node.inputs.size() == kMatmulBias + 1 && HasNoEpilogue(node)) {
      Matmul(node);
    } else if (op == "batch_norm" && HasNoEpilogue(node) && !IsEmpty(node)) {
      BatchNorm(node);
    } else if (op == "batch_norm_grad" && node.attrs.integer("relu") == 0 && !IsEmpty(node)) {
      BatchNormGrad(node);
    } else if (op == "add" && IsPlainSum(from_, node.outputs[0])) {
      Sum(node);
    } else {
      return Copy(node);
    }
    return b_.status();
  }

  Status Copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(At(id).id);
    RIDGE_ASSIGN_OR_RETURN(const NodeId id, b_.graph().CopyNode(from_, node, std::move(inputs)));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      map_[static_cast<size_t>(node.outputs[k])] = b_.graph().node(id).outputs[k];
    return Status();
  }

  void Matmul(const Node& node) {
    const std::string& name = NameOf(node);
    const Value product =
        Op("matmul", {At(node.inputs[0]), At(node.inputs[1])}, node.attrs, name + ".product");
    const Value bias = Cast(At(node.inputs[kMatmulBias]), product.dtype());
    Set(node, 0, Op("add", {product, bias}, {}, name));
  }

  // All dimensions but the channels.
  static std::vector<int64_t> Others(Value x) {
    std::vector<int64_t> axes = {0};
    for (int64_t d = 2; d < x.rank(); ++d) axes.push_back(d);
    return axes;
  }

  // [C] as [1,C,1,..].
  static Value Over(Value v, Value x) {
    Dims dims(x.dims().size(), 1);
    dims[1] = x.dims()[1];
    return ReshapeExactly(v, dims);
  }

  void BatchNorm(const Node& node) {
    const Value x = At(node.inputs[0]), scale = At(node.inputs[1]), shift = At(node.inputs[2]);
    const Value wide = Cast(x, scale.dtype());
    const Value mean = Op("reduce_mean", {wide}, {{"axes", Others(x)}}, NameOf(node, 1));
    const Value squares = Square(wide - Over(mean, x));
    const Value var = Op("reduce_mean", {squares}, {{"axes", Others(x)}}, NameOf(node, 2));
    Set(node, 0,
        Op("batch_norm_inference", {x, scale, shift, mean, var},
           {{"epsilon", node.attrs.number("epsilon")}}, NameOf(node)));
    Set(node, 1, mean);
    Set(node, 2, var);
  }

  // dshift = sum(dy), dscale = sum(dy * n), dx = scale * rstd * (dy - dshift / N - n * dscale / N).
  void BatchNormGrad(const Node& node) {
    const Value scale = At(node.inputs[1]);
    const DType dtype = At(node.inputs[0]).dtype();
    const Value x = Cast(At(node.inputs[0]), scale.dtype());
    const Value dy = Cast(At(node.inputs[4]), scale.dtype());
    const Value rstd = Rsqrt(At(node.inputs[3]) + node.attrs.number("epsilon"));
    const Value centered = x - Over(At(node.inputs[2]), x);
    const Value n = centered * Over(rstd, x);
    const Value dscale = Op("reduce_sum", {dy * n}, {{"axes", Others(x)}}, NameOf(node, 1));
    const Value dshift = Op("reduce_sum", {dy}, {{"axes", Others(x)}}, NameOf(node, 2));
    const auto count = static_cast<double>(x.type().elements() / x.dims()[1]);
    const Value without_mean = dy - Over(dshift / count, x);
    const Value inner = without_mean - n * Over(dscale / count, x);
    const Value factor = Over(scale * rstd, x);
    if (dtype == scale.dtype()) {
      Set(node, 0, Op("mul", {inner, factor}, {}, NameOf(node)));
    } else {
      Set(node, 0, Op("cast", {inner * factor}, {{"to", dtype}}, NameOf(node)));
    }
    Set(node, 1, dscale);
    Set(node, 2, dshift);
  }

  bool IsProduct(ValueId id) const {
    const Node* node = from_.producer(id);
    return node != nullptr &&
           (node->op->cost_class == CostClass::kMatmul || node->op->cost_class == CostClass::kConv);
  }

  // The terms of a sum whose parts nothing else reads, from left to right.
  void AddTerms(ValueId id, bool is_root, std::vector<ValueId>& terms) const {
    if (!IsPlainSum(from_, id) || (!is_root && !uses_.IsReadOnce(id))) {
      terms.push_back(id);
      return;
    }
    for (ValueId input : from_.producer(id)->inputs) AddTerms(input, false, terms);
  }

  void Sum(const Node& node) {
    std::vector<ValueId> terms;
    AddTerms(node.outputs[0], /*is_root=*/true, terms);
    std::stable_partition(terms.begin(), terms.end(), [this](ValueId id) { return IsProduct(id); });
    Value sum = At(terms[0]);
    for (size_t i = 1; i < terms.size(); ++i) {
      const bool last = i + 1 == terms.size();
      sum = Op("add", {sum, At(terms[i])}, {}, last ? NameOf(node) : NameOf(node) + ".terms");
    }
    Set(node, 0, sum);
  }

  const Graph& from_;
  const GraphUses uses_;
  GraphBuilder b_;
  std::vector<ValueId> map_;
};

}  // namespace

Result<Graph> NormalForm(const Graph& graph) {
  RIDGE_ASSIGN_OR_RETURN(Graph form, NormalFormer(graph).Run());
  return RemoveDead(std::move(form));
}

}  // namespace ridge
