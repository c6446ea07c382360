#include "tests/generate/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "ridge/graph/interpret.h"
#include "tests/generate/dice.h"
#include "tests/generate/forms.h"

namespace ridge {
namespace {

constexpr double kDeviations = 16;   // of a sum of local errors, with what few samples miss
constexpr double kFewRoundings = 8;  // inside a node whose terms are not known
constexpr double kAbsolute = 0.125;  // of a tensor's largest element: what approximations are off
constexpr double kOutOfRange = 1e4;  // masked scores are larger, and mean nothing

// y is a sum of products of the inputs: the magnitudes are the same sum of absolute values.
bool IsSum(std::string_view op) {
  constexpr std::array kSums = {"matmul",      "conv",          "conv_grad_input",
                                "reduce_sum",  "reduce_mean",   "conv_grad_weight",
                                "avg_pool",    "avg_pool_grad", "max_pool_grad",
                                "scatter_add", "cumsum"};
  return std::find(kSums.begin(), kSums.end(), op) != kSums.end();
}

bool Moves(const OpDef& op) {
  return op.alias_input >= 0 || (op.cost_class == CostClass::kMove && op.name != "scatter");
}

Tensor Absolute(const Tensor& tensor) {
  if (tensor.data() == nullptr || !IsFloat(tensor.type().dtype)) return tensor;
  Tensor absolute(tensor.type());
  for (int64_t i = 0; i < tensor.elements(); ++i)
    StoreFromDouble(tensor.type().dtype, absolute.mutable_data(), i, std::abs(tensor.at(i)));
  return absolute;
}

double LargestInRange(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = std::abs(tensor.at(i));
    if (x < kOutOfRange) largest = std::max(largest, x);
  }
  return largest;
}

Tensor Uniform(const TensorType& type, double number) {
  Tensor tensor(type);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.as_mutable<double>()[i] = number;
  return tensor;
}

// What `compute` is relative to, for each output of the node.
std::vector<Tensor> Magnitudes(const Node& node, const OpCall& call,
                               const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& outputs) {
  std::vector<Tensor> magnitudes(outputs.size());
  if (IsSum(node.op->name)) {
    std::vector<Tensor> absolute;
    for (const Tensor& input : inputs) absolute.push_back(Absolute(input));
    magnitudes = EvaluateNode(*node.op, call, absolute);
  } else if (!Moves(*node.op)) {
    const double share = node.op->elementwise != nullptr ? kAbsolute : 1;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].type().dtype == DType::kF64)
        magnitudes[i] = Uniform(outputs[i].type(), share * LargestInRange(outputs[i]));
    }
  }
  return magnitudes;
}

// Fits into the shortest float.
bool IsShort(double x) {
  return static_cast<double>(BF16ToFloat(FloatToBF16(static_cast<float>(x)))) == x;
}

}  // namespace

Roundoff RoundoffOf(DType dtype) {
  constexpr double kF32 = 0x1p-24;
  if (dtype == DType::kF64) return {0x1p-53, 0x1p-53};
  if (dtype == DType::kF16) return {0x1p-11, kF32};
  if (dtype == DType::kBF16) return {0x1p-8, kF32};
  return {kF32, kF32};
}

Result<RoundingModel> RoundingModel::Make(const Graph& graph, const NamedTensors& leaves) {
  RoundingModel model;
  model.graph_ = graph;
  RIDGE_ASSIGN_OR_RETURN(model.values_, EvaluateGraph(graph, leaves));
  model.magnitudes_.resize(model.values_.size());
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> inputs, outputs;
    for (ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? Tensor() : model.values_[static_cast<size_t>(id)]);
    for (ValueId id : node.outputs) outputs.push_back(model.values_[static_cast<size_t>(id)]);
    const std::vector<Tensor> magnitudes = Magnitudes(node, graph.Call(node), inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      model.magnitudes_[static_cast<size_t>(node.outputs[i])] = magnitudes[i];
  }
  for (const GraphOutput& output : graph.outputs())
    model.exact_[output.name] = model.values_[static_cast<size_t>(output.value)];
  return model;
}

namespace {

struct Mover {
  Roundoff roundoff;
  Dice dice;

  // A copy of `from` that is off by rounding.
  Tensor Moved(const Tensor& from, const Tensor& magnitude) {
    Tensor to(from.type());
    for (int64_t i = 0; i < from.elements(); ++i) {
      const double x = from.at(i);
      const double terms = magnitude.data() == nullptr ? 0 : std::abs(magnitude.at(i));
      const double most = roundoff.store * std::abs(x) +
                          kFewRoundings * roundoff.compute * std::min(terms, kOutOfRange);
      to.as_mutable<double>()[i] = std::isfinite(x) ? x + dice.Between(-most, most) : x;
    }
    return to;
  }
};

}  // namespace

std::vector<Tensor> RoundingModel::Sample(Roundoff roundoff, uint64_t seed) const {
  Mover mover{roundoff, Dice(seed)};
  std::vector<Tensor> values = values_;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo& info = graph_.value(static_cast<ValueId>(i));
    const bool rounds = info.kind == ValueKind::kConstant && info.type.dtype == DType::kF64 &&
                        values[i].elements() == 1 && !IsShort(values[i].at(0));
    if (rounds) values[i] = mover.Moved(values[i], Tensor());
  }
  for (const Node& node : graph_.nodes()) {
    std::vector<Tensor> inputs;
    for (ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? Tensor() : values[static_cast<size_t>(id)]);
    std::vector<Tensor> outputs = EvaluateNode(*node.op, graph_.Call(node), inputs);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const auto id = static_cast<size_t>(node.outputs[k]);
      const bool rounds = !Moves(*node.op) && outputs[k].type().dtype == DType::kF64;
      values[id] = rounds ? mover.Moved(outputs[k], magnitudes_[id]) : std::move(outputs[k]);
    }
  }
  return values;
}

std::map<std::string, double> RoundingModel::Bounds(Roundoff roundoff, int samples) const {
  // Differences between doubles are seen from here on; below, the bound is scaled.
  constexpr double kSeen = 0x1p-32;
  const double scale = std::max(1.0, kSeen / roundoff.store);
  std::map<std::string, double> bounds;
  for (int sample = 0; sample < samples; ++sample) {
    const std::vector<Tensor> values =
        Sample({roundoff.store * scale, roundoff.compute * scale}, static_cast<uint64_t>(sample));
    for (const GraphOutput& output : graph_.outputs()) {
      const Tensor& moved = values[static_cast<size_t>(output.value)];
      const Tensor& exact = exact_.at(output.name);
      double& bound = bounds[output.name];
      for (int64_t i = 0; i < exact.elements(); ++i)
        bound = std::max(bound, std::abs(moved.at(i) - exact.at(i)));
    }
  }
  for (auto& [name, bound] : bounds)
    bound = kDeviations * bound / scale +
            (4 * roundoff.store + 64 * roundoff.compute) * LargestInRange(exact_.at(name));
  return bounds;
}

std::string FirstOutside(const RoundingModel& model, Roundoff roundoff, int samples,
                         const NamedTensors& got, bool stepped) {
  const std::map<std::string, double> bounds = model.Bounds(roundoff, samples);
  for (const auto& [name, tensor] : got) {
    const Tensor& exact = model.exact().at(name);
    const double step = stepped ? 4 * roundoff.store / kTrainRate : 0;
    const double bound = bounds.at(name) + step;
    for (int64_t i = 0; i < exact.elements(); ++i) {
      if (std::abs(tensor.at(i) - exact.at(i)) <= bound) continue;
      return fmt::format("element {} of the gradient of '{}' is {}; exactly it is {}, bound {:.2g}",
                         i, name, tensor.at(i), exact.at(i), bound);
    }
  }
  return "";
}

}  // namespace ridge
