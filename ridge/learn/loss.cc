#include "ridge/learn/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "ridge/graph/builder.h"
#include "ridge/graph/suggest.h"
#include "ridge/models/layers.h"

namespace ridge {
namespace {

constexpr char kLoss[] = "loss";

constexpr std::array<std::pair<std::string_view, LossKind>, 3> kKinds = {{
    {"cross_entropy:", LossKind::kCrossEntropy},
    {"mse:", LossKind::kMse},
    {"bce:", LossKind::kBce},
}};

bool IsOneFloat(const TensorType& type) { return IsFloat(type.dtype) && type.elements() == 1; }

// Lists the outputs with their types, and the option for one of them.
std::string OutputsHint(const Graph& graph) {
  size_t width = 0;
  for (const GraphOutput& output : graph.outputs()) width = std::max(width, output.name.size());
  std::string text = "\n  its outputs:";
  std::string example;
  for (const GraphOutput& output : graph.outputs()) {
    const TensorType& type = graph.type(output.value);
    text += fmt::format("\n    {:{}}  {}", output.name, width, TypeToString(type));
    if (example.empty() && IsFloat(type.dtype) && type.rank() >= 1) example = output.name;
  }
  if (graph.outputs().empty()) text += " none";
  if (example.empty()) example = "OUTPUT";
  return text + fmt::format(
                    "\n  hint: --loss cross_entropy:{0} (labels), --loss mse:{0} or "
                    "--loss bce:{0} (targets), or --loss NAME for one that is one float",
                    example);
}

Status Usage(const Graph& graph, const std::string& text) {
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}{}", graph.name, text, OutputsHint(graph)));
}

Result<ValueId> FindNamed(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindOutput(name);
  if (id != kNoValue) return id;
  std::vector<std::string> names;
  for (const GraphOutput& output : graph.outputs()) names.push_back(output.name);
  return Usage(
      graph, fmt::format("--loss names '{}', which is no output{}", name, DidYouMean(name, names)));
}

// Without --loss.
Result<ValueId> FindOwn(const Graph& graph) {
  const ValueId named = graph.FindOutput(kLoss);
  if (named != kNoValue && IsOneFloat(graph.type(named))) return named;
  std::vector<ValueId> candidates;
  for (const GraphOutput& output : graph.outputs()) {
    if (IsOneFloat(graph.type(output.value)) && graph.type(output.value).rank() == 0)
      candidates.push_back(output.value);
  }
  if (candidates.size() == 1) return candidates[0];
  if (named != kNoValue) {
    return Usage(graph, fmt::format("the output 'loss' is {}; it must be one float",
                                    TypeToString(graph.type(named))));
  }
  return Usage(graph, candidates.empty() ? "no output 'loss', nor another one that is one float"
                                         : "several outputs that are one float, none named 'loss'");
}

// Replaces an existing output `loss`.
void SetLoss(Graph& graph, ValueId loss) {
  const std::vector<GraphOutput> outputs = graph.outputs();
  graph.ClearOutputs();
  for (const GraphOutput& output : outputs) {
    if (output.name != kLoss) graph.AddOutput(output.name, output.value);
  }
  graph.AddOutput(kLoss, loss);
}

Dims Squeezed(const Dims& dims) {
  Dims squeezed;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(squeezed),
               [](int64_t extent) { return extent != 1; });
  return squeezed;
}

// The field that holds the labels: by name, else the only one of integers that no input is named
// after.
const Field* FindLabel(const Graph& graph, const std::vector<Field>& fields) {
  for (const char* name : {"label", "labels", "y", "target", "targets"}) {
    for (const Field& field : fields) {
      if (field.name == name) return &field;
    }
  }
  const Field* found = nullptr;
  for (const Field& field : fields) {
    if (IsFloat(field.type.dtype) || graph.FindValue(field.name) != kNoValue) continue;
    if (found != nullptr) return nullptr;
    found = &field;
  }
  return found;
}

// Which dimension of `dims` [B, ...] has the classes.
int ClassAxis(const Dims& dims, const Field* label) {
  const int last = static_cast<int>(dims.size()) - 1;
  const int usual = dims.size() == 3 ? last : 1;
  if (label == nullptr || last == 1) return usual;
  const Dims sample = Squeezed(label->type.dims);
  const bool second = Squeezed(Dims(dims.begin() + 2, dims.end())) == sample;
  const bool at_end = Squeezed(Dims(dims.begin() + 1, dims.end() - 1)) == sample;
  if (second == at_end) return usual;
  return second ? 1 : last;
}

class LossBuilder {
 public:
  LossBuilder(GraphBuilder& b, LossSpec spec, const std::vector<Field>& fields)
      : b_(b), spec_(std::move(spec)), fields_(fields) {}

  Result<Value> Build(Value output) {
    const TensorType type = output.type();
    const size_t least = spec_.kind == LossKind::kCrossEntropy ? 2 : 1;
    if (!IsFloat(type.dtype) || type.dims.size() < least || type.elements() < 1) {
      return Usage(b_.graph(),
                   fmt::format("--loss needs a float output with {}; '{}' is {}",
                               least == 2 ? "dimensions for batch and classes" : "a batch",
                               spec_.output, TypeToString(type)));
    }
    if (spec_.kind == LossKind::kCrossEntropy) return CrossEntropy(output);
    return spec_.kind == LossKind::kMse ? MeanSquare(output) : BinaryCrossEntropy(output);
  }

 private:
  Result<Value> CrossEntropy(Value output) {
    const int axis = ClassAxis(output.dims(), FindLabel(b_.graph(), fields_));
    Value logits = Before(output, {"softmax", "log_softmax"}, axis);
    const int last = static_cast<int>(logits.dims().size()) - 1;
    if (axis != last) {
      std::vector<int64_t> order(static_cast<size_t>(last + 1));
      std::iota(order.begin(), order.end(), int64_t{0});
      order.erase(order.begin() + axis);
      order.push_back(axis);
      logits = Transpose(logits, order);
    }
    if (!b_.ok()) return b_.status();
    Dims dims = logits.dims();
    dims.pop_back();
    const Value label = TargetInput("label", {DType::kI64, std::move(dims)});
    const Value loss = CrossEntropyMean(b_, logits, label);
    if (!b_.ok()) return b_.status();
    return loss;
  }

  Result<Value> MeanSquare(Value output) {
    const Value target = TargetInput("target", output.type());
    return Mean(Square(Wide(output - target)));
  }

  // softplus(x) - t x, which neither overflows nor takes the logarithm of 0.
  Result<Value> BinaryCrossEntropy(Value output) {
    const Value target = TargetInput("target", output.type());
    const Value x = Wide(Before(output, {"sigmoid"}, /*axis=*/-1));
    const Value hit = Wide(target) * x;
    return Mean(Softplus(x) - hit);
  }

  // The input of the node that makes `output`, if it is one of `ops` (along `axis`).
  Value Before(Value output, std::initializer_list<const char*> ops, int axis) const {
    const Node* node = b_.graph().producer(output.id);
    const auto is_op = [&](const char* op) { return node->op->name == op; };
    if (node == nullptr || std::none_of(ops.begin(), ops.end(), is_op)) return output;
    if (axis >= 0) {
      const int64_t at = node->attrs.integer("axis");
      const auto rank = static_cast<int64_t>(output.dims().size());
      if ((at < 0 ? at + rank : at) != axis) return output;
    }
    return b_.At(node->inputs[0]);
  }

  // A model may already have this input, for a loss of its own.
  Value TargetInput(const std::string& name, TensorType type) {
    const ValueId same = b_.graph().FindValue(name);
    if (same != kNoValue && b_.graph().value(same).kind == ValueKind::kInput &&
        b_.graph().type(same) == type)
      return b_.At(same);
    std::vector<std::string> dim_names(type.dims.size());
    dim_names[0] = "batch";
    return b_.Input(b_.graph().UniqueName(name), std::move(type), std::move(dim_names));
  }

  // Half-precision numbers are summed as f32.
  Value Wide(Value x) {
    if (!b_.ok()) return {};
    return Cast(x, x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32);
  }

  Result<Value> Mean(Value losses) {
    const Value loss = Op("reduce_mean", {losses}, {}, kLoss);
    if (!b_.ok()) return b_.status();
    return loss;
  }

  GraphBuilder& b_;
  const LossSpec spec_;
  const std::vector<Field>& fields_;
};

}  // namespace

Result<LossSpec> ParseLoss(const std::string& text) {
  LossSpec spec{LossKind::kOutput, text};
  for (const auto& [prefix, kind] : kKinds) {
    if (text.starts_with(prefix)) spec = {kind, text.substr(prefix.size())};
  }
  if (!spec.output.empty()) return spec;
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("--loss is '{}'; it must be cross_entropy:OUTPUT, mse:OUTPUT, "
                            "bce:OUTPUT or the name of an output that is the loss",
                            text));
}

Result<Graph> WithLoss(Graph forward, const std::string& loss, const std::vector<Field>& fields) {
  if (loss.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const ValueId own, FindOwn(forward));
    if (forward.FindOutput(kLoss) != own) SetLoss(forward, own);
    return forward;
  }
  RIDGE_ASSIGN_OR_RETURN(LossSpec spec, ParseLoss(loss));
  // An output may have a name that begins like a kind.
  if (forward.FindOutput(loss) != kNoValue) spec = {LossKind::kOutput, loss};
  RIDGE_ASSIGN_OR_RETURN(const ValueId output, FindNamed(forward, spec.output));
  if (spec.kind == LossKind::kOutput) {
    if (!IsOneFloat(forward.type(output))) {
      return Usage(forward, fmt::format("--loss names '{}', which is {}; a loss is one float",
                                        spec.output, TypeToString(forward.type(output))));
    }
    SetLoss(forward, output);
    return forward;
  }
  GraphBuilder b(std::move(forward));
  RIDGE_ASSIGN_OR_RETURN(const Value value, LossBuilder(b, spec, fields).Build(b.At(output)));
  SetLoss(b.graph(), value.id);
  return b.Build();
}

}  // namespace ridge
