// Nodes that do not depend on the tokens are copied as they are: tables of positions, rotary
// angles.  Where one meets a value by position, its row at the position is gathered.
#include "ridge/learn/decode_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/reach.h"

namespace ridge {
namespace {

constexpr int kNone = Factor::kNone;

class Decoder {
 public:
  Decoder(const Graph& from, ValueId tokens, ValueId logits)
      : from_(from),
        tokens_(tokens),
        logits_(logits),
        length_(from.type(tokens).dims[1]),
        b_(from.name),
        map_(from.values().size(), kNoValue),
        axes_(from.values().size(), kNone) {}

  Result<Graph> Run() {
    const ValueSet needed = Ancestors(from_, {logits_});
    position_ = b_.Input(kPositionInput, {DType::kI64, {1}});
    for (size_t v = 0; v < from_.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const ValueInfo& info = from_.value(id);
      if (!needed[v]) continue;
      if (info.kind != ValueKind::kResult) {
        RIDGE_RETURN_IF_ERROR(CopyLeaf(id));
      } else if (map_[v] == kNoValue) {
        RIDGE_RETURN_IF_ERROR(Visit(from_.node(info.producer)));
      }
    }
    if (axis(logits_) != 1) return Refuse("the logits do not depend on the tokens");
    b_.Output("logits", b_.At(Mapped(logits_)));
    return std::move(b_).Build();
  }

 private:
  int axis(ValueId id) const { return id == kNoValue ? kNone : axes_[static_cast<size_t>(id)]; }
  ValueId Mapped(ValueId id) const {
    return id == kNoValue ? kNoValue : map_[static_cast<size_t>(id)];
  }
  void Set(ValueId id, Value value, int axis) {
    map_[static_cast<size_t>(id)] = value.id;
    axes_[static_cast<size_t>(id)] = axis;
  }

  Status Refuse(const std::string& why) const {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: can't be run token by token: {}", from_.name, why));
  }
  Status Refuse(const Node& node, const std::string& why) const {
    return Refuse(from_.Where(node) + " " + why);
  }

  Status CopyLeaf(ValueId id) {
    ValueInfo leaf = from_.value(id);
    if (id == tokens_) {
      leaf.type.dims = {1, 1};
      leaf.dim_names.clear();
      axes_[static_cast<size_t>(id)] = 1;
    } else if (leaf.kind == ValueKind::kInput) {
      return Refuse(fmt::format("the logits depend on the input '{}' too", leaf.name));
    }
    map_[static_cast<size_t>(id)] = b_.graph().AddLeaf(std::move(leaf));
    return Status();
  }

  Status Visit(const Node& node) {
    const auto by_position = [this](ValueId id) { return axis(id) != kNone; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), by_position))
      return Copy(node, Inputs(node), {});
    if (node.op->name == "attention") return VisitAttention(node);
    const OpCall call = from_.Call(node);
    for (const Factor& factor : AxesOf(*node.op, call)) {
      if (Holds(node, call, factor)) return CopyRow(node, call, factor);
    }
    return Refuse(node, "couples positions");
  }

  // Whether the positions of each input are along its dimension of the factor.
  bool Holds(const Node& node, const OpCall& call, const Factor& factor) const {
    if (factor.offset_attr != nullptr || factor.over != Factor::Over::kNothing) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int along = factor.inputs[i], positions = axis(node.inputs[i]);
      if (positions != kNone && positions != along) return false;
      if (positions != kNone || along == kNone) continue;
      const int64_t extent = call.inputs[i].dims[static_cast<size_t>(along)];
      if (extent != 1 && extent != length_) return false;
    }
    return std::all_of(factor.outputs.begin(), factor.outputs.end(),
                       [](int along) { return along != kNone; });
  }

  Status CopyRow(const Node& node, const OpCall& call, const Factor& factor) {
    std::vector<ValueId> inputs = Inputs(node);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int along = factor.inputs[i];
      if (axis(node.inputs[i]) != kNone || along == kNone) continue;
      if (call.inputs[i].dims[static_cast<size_t>(along)] == 1) continue;
      inputs[i] = Gather(b_.At(inputs[i]), position_, along).id;
    }
    return Copy(node, std::move(inputs), factor.outputs);
  }

  std::vector<ValueId> Inputs(const Node& node) const {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(Mapped(id));
    return inputs;
  }

  // With dimensions along[k] of output k for one position; empty: whole.
  Status Copy(const Node& node, std::vector<ValueId> inputs, const std::vector<int>& along) {
    RIDGE_RETURN_IF_ERROR(b_.status());
    AttrMap attrs = node.attrs;
    if (!along.empty() && node.op->dims_attr != nullptr) {
      Dims dims = from_.type(node.outputs[0]).dims;
      dims[static_cast<size_t>(along[0])] /= length_;
      attrs[node.op->dims_attr] = dims;
    }
    std::vector<std::string> names;
    for (ValueId id : node.outputs) names.push_back(b_.graph().UniqueName(from_.value(id).name));
    RIDGE_ASSIGN_OR_RETURN(const NodeId copy,
                           b_.graph().AddNode(*node.op, std::move(inputs), std::move(attrs),
                                              std::move(names), node.location));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId made = b_.graph().node(copy).outputs[k];
      TensorType expected = from_.type(node.outputs[k]);
      if (!along.empty()) expected.dims[static_cast<size_t>(along[k])] /= length_;
      if (b_.graph().type(made) != expected) return Refuse(node, "mixes positions");
      Set(node.outputs[k], b_.At(made), along.empty() ? kNone : along[k]);
    }
    return Status();
  }

  // q, k and v are [1,heads,positions,D], without a mask beside causality.
  Status CheckAttention(const Node& node) const {
    const AttrMap& attrs = node.attrs;
    const bool causal = attrs.integer("causal") == 1 && attrs.integer("causal_offset") == 0;
    if (!causal || (node.inputs.size() > 3 && node.inputs[3] != kNoValue))
      return Refuse(node, "is not causal, or has a mask");
    for (size_t i = 0; i < 3; ++i) {
      const bool fits = attrs.text("layout") == "heads" && axis(node.inputs[i]) == 2 &&
                        from_.type(node.inputs[i]).dims[2] == length_;
      if (!fits) return Refuse(node, "has queries, keys or values of other positions");
    }
    return Status();
  }

  Status VisitAttention(const Node& node) {
    RIDGE_RETURN_IF_ERROR(CheckAttention(node));
    const int number = attentions_++;
    const Value k = Extend(node.inputs[1], fmt::format("cache.{}.k", number));
    const Value v = Extend(node.inputs[2], fmt::format("cache.{}.v", number));
    AttrMap attrs = node.attrs;
    attrs["causal"] = int64_t{0};
    const std::vector<Value> made =
        OpOutputs("attention", {b_.At(Mapped(node.inputs[0])), k, v, Visible()}, std::move(attrs),
                  b_.graph().UniqueName(from_.value(node.outputs[0]).name));
    RIDGE_RETURN_IF_ERROR(b_.status());
    for (size_t i = 0; i < node.outputs.size(); ++i) Set(node.outputs[i], made[i], 2);
    return Status();
  }

  // The cache with the row of this position, [1,heads,T,D].
  Value Extend(ValueId row, const std::string& name) {
    const Dims dims = from_.type(row).dims;
    const int64_t heads = dims[1], width = dims[3];
    const Value state =
        b_.State(b_.graph().UniqueName(name), {from_.type(row).dtype, {length_, heads, width}},
                 Init::Zeros(), ValueRole::kStatistic);
    const Value fresh = Reshape(Transpose(b_.At(Mapped(row)), {0, 2, 1, 3}), {1, heads, width});
    const Value all = Op("scatter", {state, position_, fresh}, {{"reduction", "none"}});
    b_.Update(state, all);
    return Transpose(Reshape(all, {1, length_, heads, width}), {0, 2, 1, 3});
  }

  // bool [1,1,1,T]: positions up to this one.
  Value Visible() {
    if (visible_.valid()) return visible_;
    std::vector<int64_t> numbers(static_cast<size_t>(length_));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    const Value keys = b_.Constant(Tensor::FromInts({1, 1, 1, length_}, numbers), "positions");
    visible_ = keys <= Reshape(position_, {1, 1, 1, 1});
    return visible_;
  }

  const Graph& from_;
  const ValueId tokens_, logits_;
  const int64_t length_;
  GraphBuilder b_;
  Value position_, visible_;
  std::vector<ValueId> map_;  // by value of from_: that for one position
  std::vector<int> axes_;     // by value of from_: the dimension of positions, or kNone
  int attentions_ = 0;
};

}  // namespace

Result<Graph> DecodeForm(const Graph& inference, const std::string& tokens,
                         const std::string& logits) {
  const ValueId input = inference.FindValue(tokens), output = inference.FindOutput(logits);
  const auto refuse = [&](const std::string& what) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: is no language model: {}", inference.name, what));
  };
  if (input == kNoValue || output == kNoValue)
    return refuse(fmt::format("it lacks the input '{}' or the output '{}'", tokens, logits));
  const TensorType &in = inference.type(input), &out = inference.type(output);
  const bool is_tokens = in.rank() == 2 && in.dims[0] == 1 && IsInteger(in.dtype);
  const bool fits = out.rank() == 3 && out.dims[0] == 1 && is_tokens && out.dims[1] == in.dims[1];
  if (fits && in.dims[1] > 1) return Decoder(inference, input, output).Run();
  return refuse(
      fmt::format("'{}' is {} and '{}' is {}; they must be i64[1,positions] and "
                  "f32[1,positions,vocabulary]",
                  tokens, TypeToString(in), logits, TypeToString(out)));
}

}  // namespace ridge
