// InspectForward: the facts of a forward graph that training needs; refuses graphs that it cannot
// train.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/batch_axis.h"
#include "ridge/learn/loss_shape.h"
#include "ridge/learn/per_sample_loss.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

Status Invalid(const Graph& graph, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("{}: {}", graph.name, text));
}

Result<ValueId> FindLoss(const Graph& graph) {
  const ValueId loss = graph.FindOutput("loss");
  if (loss == kNoValue) {
    std::vector<std::string> names;
    for (const GraphOutput& output : graph.outputs()) names.push_back(output.name);
    return Invalid(graph,
                   fmt::format("no output 'loss' (it has: {}). hint: end the graph with "
                               "'output loss'",
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  const TensorType& type = graph.type(loss);
  if (IsFloat(type.dtype) && type.elements() == 1) return loss;
  return Invalid(graph, fmt::format("the output 'loss' is {}; it must be one float. hint: "
                                    "loss = reduce_mean(...)",
                                    TypeToString(type)));
}

bool UpdatesParameters(const Graph& graph) {
  return std::any_of(graph.updates().begin(), graph.updates().end(), [&](const GraphUpdate& u) {
    return graph.value(u.variable).kind == ValueKind::kParameter;
  });
}

bool IsStepInput(const std::string& name) { return name == kLrInput || name == kStepInput; }

Status CheckReservedNames(const Graph& graph, bool has_optimizer) {
  for (const char* name : {kLrInput, kStepInput, kRoundingInput, kWeightInput, kOtherLabelInput,
                           kLabelWeightInput, kLossScaleState, kGoodUpdatesState, kUpdatesState}) {
    if (graph.FindValue(name) == kNoValue || (has_optimizer && IsStepInput(name))) continue;
    return Invalid(graph,
                   fmt::format("the name '{}' belongs to the trainer; rename that value", name));
  }
  const ValueId rng = graph.FindValue(kRngInput);
  if (rng == kNoValue) return Status();
  const ValueInfo& info = graph.value(rng);
  if (info.kind == ValueKind::kInput && info.type == TensorType{DType::kI64, {3}}) return Status();
  return Invalid(graph, fmt::format("'{}' is {}; it must be an input i64[3] = {{seed, step, first "
                                    "sample}}",
                                    kRngInput, TypeToString(info.type)));
}

Status FindDataInputs(const Graph& graph, ForwardInfo& facts) {
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    if (info.name == kRngInput || IsWholeInput(info.name) ||
        (facts.has_optimizer && IsStepInput(info.name)))
      continue;
    const int64_t extent = info.type.dims.empty() ? -1 : info.type.dims[0];
    if (facts.data_inputs.empty()) facts.batch = extent;
    if (extent < 1 || extent != facts.batch) {
      return Invalid(graph, fmt::format("input '{}' is {}; the first extent of every input must be "
                                        "the batch{}",
                                        info.name, TypeToString(info.type),
                                        facts.batch < 1 ? "" : fmt::format(", {}", facts.batch)));
    }
    facts.data_inputs.push_back(id);
  }
  if (facts.data_inputs.empty()) return Invalid(graph, "no input to feed a batch into");
  return Status();
}

bool IsLabel(const ValueInfo& info, int64_t batch) {
  const bool integer = info.type.dtype == DType::kI64 || info.type.dtype == DType::kI32;
  return info.kind == ValueKind::kInput && integer && info.type.rank() >= 1 &&
         info.type.dims[0] == batch;
}

// The only cross entropy of a graph, when its labels are an input: whatever its values are named.
const Node* FindCrossEntropy(const Graph& graph, int64_t batch) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "softmax_cross_entropy") continue;
    if (found != nullptr) return nullptr;
    found = &node;
  }
  if (found == nullptr || !IsLabel(graph.value(found->inputs[1]), batch)) return nullptr;
  return graph.type(found->inputs[0]).dims[0] == batch ? found : nullptr;
}

// A classifier: an integer input label [batch, ...] with logits [batch, ..., classes].  A graph
// that writes its loss in other nodes names them: output `logits` [batch, classes], input `label`.
void FindClassifier(const Graph& graph, ForwardInfo& facts) {
  if (const Node* node = FindCrossEntropy(graph, facts.batch)) {
    facts.logits = node->inputs[0];
    facts.label = node->inputs[1];
    if (IsWeightedMean(graph, facts.eval_loss))
      facts.ignored_label = node->attrs.integer("ignore_index");
    return;
  }
  const ValueId logits = graph.FindOutput("logits");
  const ValueId label = graph.FindValue("label");
  if (logits == kNoValue || label == kNoValue) return;
  const TensorType& x = graph.type(logits);
  const ValueInfo& y = graph.value(label);
  if (x.rank() != 2 || !IsFloat(x.dtype) || !IsLabel(y, facts.batch) || y.type.rank() != 1) return;
  if (x.dims[0] != facts.batch || x.dims[1] < 1) return;
  facts.logits = logits;
  facts.label = label;
}

// Past what only names or converts a value.
const Node* ProducerBehindCasts(const Graph& graph, ValueId id) {
  const Node* node = graph.producer(id);
  while (node != nullptr && (node->op->name == "reshape" || node->op->name == "cast"))
    node = graph.producer(node->inputs[0]);
  return node;
}

// reduce_mean(softmax_cross_entropy), or the quotient of sums that ignored labels make of it.
bool IsMeanCrossEntropy(const Graph& graph, ValueId loss) {
  const Node* node = ProducerBehindCasts(graph, loss);
  bool reduced = false;
  while (node != nullptr && node->op->name != "softmax_cross_entropy") {
    const std::string& op = node->op->name;
    const bool mean = op == "reduce_mean", part = op == "reduce_sum" || op == "div";
    if (!mean && !part) return false;
    reduced = reduced || mean || op == "div";
    node = ProducerBehindCasts(graph, node->inputs[0]);
  }
  return node != nullptr && reduced;
}

// The value that is squared: x of square(x) or x * x.
ValueId Squared(const Node& node) {
  if (node.op->name == "square") return node.inputs[0];
  return node.op->name == "mul" && node.inputs[0] == node.inputs[1] ? node.inputs[0] : kNoValue;
}

// reduce_mean((a - b)^2) where one of both is an input.
void FindRegression(const Graph& graph, ForwardInfo& facts) {
  const Node* mean = ProducerBehindCasts(graph, facts.loss);
  if (mean == nullptr || mean->op->name != "reduce_mean") return;
  const Node* square = ProducerBehindCasts(graph, mean->inputs[0]);
  if (square == nullptr || Squared(*square) == kNoValue) return;
  const Node* difference = ProducerBehindCasts(graph, Squared(*square));
  if (difference == nullptr || difference->op->name != "sub") return;
  ValueId prediction = difference->inputs[0], target = difference->inputs[1];
  const auto is_input = [&](ValueId id) { return graph.value(id).kind == ValueKind::kInput; };
  if (!is_input(target)) std::swap(prediction, target);
  if (!is_input(target) || is_input(prediction)) return;
  if (graph.type(prediction).dims != graph.type(target).dims || !IsFloat(graph.type(target).dtype))
    return;
  facts.prediction = prediction;
  facts.target = target;
}

void FindCtc(const Graph& graph, ForwardInfo& facts) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "ctc_loss") continue;
    if (found != nullptr) return;
    found = &node;
  }
  if (found == nullptr || graph.type(found->inputs[0]).dims[0] != facts.batch) return;
  for (const size_t input : {1, 3}) {
    if (!IsLabel(graph.value(found->inputs[input]), facts.batch)) return;
  }
  facts.ctc = CtcInfo{found->inputs[0], found->inputs[2], found->inputs[1], found->inputs[3],
                      found->attrs.integer("blank")};
}

// The answers that assign_boxes compares with true boxes.
void FindDetection(const Graph& graph, ForwardInfo& facts) {
  const ValueId detections = graph.FindOutput("detections");
  const auto assigns = [](const Node& node) { return node.op->name == "assign_boxes"; };
  const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(), assigns);
  if (detections == kNoValue || found == graph.nodes().end()) return;
  const ValueId boxes = found->inputs[3], classes = found->inputs[4];
  const Dims &answers = graph.type(detections).dims, &scores = graph.type(found->inputs[0]).dims;
  const bool fits = answers.size() == 3 && answers[0] == facts.batch && answers[0] == scores[0] &&
                    answers[1] == scores[1] && answers[2] == 4 + scores[2];
  if (!fits || graph.value(boxes).kind != ValueKind::kInput ||
      graph.value(classes).kind != ValueKind::kInput)
    return;
  facts.detection = DetectionInfo{detections, boxes, classes};
}

}  // namespace

Result<ForwardInfo> InspectForward(const Graph& forward) {
  const std::vector<std::string> unbound = UnboundDims(forward);
  if (!unbound.empty()) {
    return Invalid(forward,
                   fmt::format("dimensions without a size: {}. hint: --batch sets 'batch'; "
                               "write others as f32[batch, length=128]",
                               fmt::join(unbound, ", ")));
  }
  ForwardInfo facts;
  facts.has_optimizer = UpdatesParameters(forward);
  RIDGE_RETURN_IF_ERROR(CheckReservedNames(forward, facts.has_optimizer));
  RIDGE_ASSIGN_OR_RETURN(facts.loss, FindLoss(forward));
  const ValueId eval_loss = forward.FindOutput(kEvalLossOutput);
  facts.eval_loss = eval_loss == kNoValue ? facts.loss : eval_loss;
  RIDGE_RETURN_IF_ERROR(FindDataInputs(forward, facts));
  FindClassifier(forward, facts);
  if (facts.logits != kNoValue)
    facts.loss_is_cross_entropy = IsMeanCrossEntropy(forward, facts.eval_loss);
  else
    FindRegression(forward, facts);
  if (facts.logits == kNoValue) FindCtc(forward, facts);
  FindDetection(forward, facts);
  return facts;
}

}  // namespace ridge
