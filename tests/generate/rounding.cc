#include "tests/generate/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "ridge/graph/interpret.h"
#include "tests/generate/dice.h"
#include "tests/generate/forms.h"

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFewRoundings = 8;  // inside a node whose terms are not known
constexpr int kFewSamples = 10;      // more of them are looked at closely
constexpr double kAbsolute = 0.125;  // of a tensor's largest element: what approximations are off
constexpr double kOutOfRange = 1e4;  // masked scores are larger, and mean nothing

// How far from the samples' spread a sum of local errors may be, with what few samples miss.  More
// for f64, where it costs nothing: no mistake is that small.
double Deviations(Roundoff roundoff) { return roundoff.store < 0x1p-50 ? 100 : 16; }

bool IsOneOf(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// y is a sum of products of the inputs: the magnitudes are the same sum of absolute values.
bool IsSum(std::string_view op) {
  return IsOneOf(
      op, {"matmul", "conv", "conv_grad_input", "conv_grad_weight", "reduce_sum", "reduce_mean",
           "avg_pool", "avg_pool_grad", "max_pool_grad", "scatter_add", "cumsum"});
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

// The gradients of norms are differences of terms as large as scale * dy / deviation, and may
// vanish where these do not (a row of one element).  0 for other operators.
double TermsOfNorm(const Node& node, const std::vector<Tensor>& inputs) {
  constexpr double kMostInverse = 10;  // epsilon is 0.01 at least
  struct Norm {
    std::string_view op;
    size_t x, scale;
  };
  constexpr Norm kNorms[] = {{"layer_norm", 0, 1},
                             {"batch_norm", 0, 1},
                             {"layer_norm_grad", 3, 4},
                             {"rms_norm_grad", 2, 3},
                             {"batch_norm_grad", 4, 1}};
  for (const Norm& norm : kNorms) {
    if (node.op->name != norm.op) continue;
    const double scale = inputs.size() > norm.scale ? LargestInRange(inputs[norm.scale]) : 1;
    return LargestInRange(inputs[norm.x]) * scale * kMostInverse;
  }
  return 0;
}

// The products that a determinant adds up are no larger than the largest element to the power n,
// and may cancel.  0 for other operators.
double TermsOfDeterminant(const Node& node, const std::vector<Tensor>& inputs) {
  if (node.op->name != "det") return 0;
  const auto n = static_cast<double>(inputs[0].type().dims.back());
  return std::tgamma(n + 1) * std::pow(LargestInRange(inputs[0]), n);
}

// A row of weights adds up terms of both signs.  0 for other operators.
double TermsOfInterpolation(const Node& node, const std::vector<Tensor>& inputs) {
  if (node.op->name != "interpolate") return 0;
  const auto& weights = std::get<std::vector<double>>(node.attrs.at("weights"));
  const auto& starts = std::get<std::vector<int64_t>>(node.attrs.at("starts"));
  double most = 0;
  for (size_t row = 0; row + 1 < starts.size(); ++row) {
    double sum = 0;
    for (int64_t i = starts[row]; i < starts[row + 1]; ++i)
      sum += std::abs(weights[static_cast<size_t>(i)]);
    most = std::max(most, sum);
  }
  return most * LargestInRange(inputs[0]);
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
  } else if (!IsExact(*node.op)) {
    const double share = node.op->elementwise != nullptr ? kAbsolute : 1;
    const double terms = TermsOfNorm(node, inputs) + TermsOfDeterminant(node, inputs) +
                         TermsOfInterpolation(node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].type().dtype != DType::kF64) continue;
      magnitudes[i] =
          Uniform(outputs[i].type(), std::max(terms, share * LargestInRange(outputs[i])));
    }
  }
  return magnitudes;
}

// Whole numbers that every float holds: their sums are exact.
bool IsWhole(const Tensor& tensor) {
  for (int64_t i = 0; tensor.data() != nullptr && i < tensor.elements(); ++i) {
    const double x = tensor.at(i);
    if (!(std::abs(x) <= 256) || x != std::floor(x)) return false;
  }
  return true;
}

bool Rounds(const Node& node, const std::vector<Tensor>& inputs, const Tensor& output) {
  if (IsExact(*node.op) || output.type().dtype != DType::kF64) return false;
  return !IsWhole(output) || !std::all_of(inputs.begin(), inputs.end(), IsWhole);
}

// Fits into the shortest float.
bool IsShort(double x) {
  return static_cast<double>(BF16ToFloat(FloatToBF16(static_cast<float>(x)))) == x;
}

}  // namespace

bool IsExact(const OpDef& op) {
  if (op.alias_input >= 0) return true;
  if (op.cost_class == CostClass::kMove)
    return !IsSum(op.name) && !IsOneOf(op.name, {"scatter", "interpolate"});
  return IsOneOf(op.name, {"neg", "abs", "relu", "relu_grad", "clip", "maximum", "minimum", "where",
                           "sign", "floor", "ceil", "round", "trunc", "reduce_max", "reduce_min",
                           "max_pool", "max_roi_pool", "top_k"});
}

Roundoff RoundoffOf(DType dtype) {
  constexpr double kF32 = 0x1p-24, kFlushed = 0x1p-126;  // smaller ones may be 0
  if (dtype == DType::kF64) return {0x1p-53, 0x1p-53, 0};
  if (dtype == DType::kF16) return {0x1p-11, kF32, 0x1p-25};
  if (dtype == DType::kBF16) return {0x1p-8, kF32, kFlushed};
  return {kF32, kF32, kFlushed};
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

  // What differs by less than its rounding may be equal where it is stored: half of the time all is
  // as stored.
  void MaybeStore(std::vector<Tensor>& inputs) {
    if (dice.Percent(50)) return;
    for (Tensor& tensor : inputs) {
      if (tensor.data() != nullptr && tensor.type().dtype == DType::kF64) tensor = Stored(tensor);
    }
  }

  Tensor Stored(const Tensor& from) const {
    Tensor to(from.type());
    for (int64_t i = 0; i < from.elements(); ++i) {
      const double x = from.at(i);
      int exponent = 0;
      (void)std::frexp(x, &exponent);
      const double unit = std::ldexp(roundoff.store, exponent);  // between neighbours
      const bool rounds = std::isfinite(x) && unit > 0;
      to.as_mutable<double>()[i] = rounds ? std::nearbyint(x / unit) * unit : x;
    }
    return to;
  }

  // A copy of `from` that is off by rounding.
  Tensor Moved(const Tensor& from, const Tensor& magnitude) {
    Tensor to(from.type());
    for (int64_t i = 0; i < from.elements(); ++i) {
      const double x = from.at(i);
      const double terms = magnitude.data() == nullptr ? 0 : std::abs(magnitude.at(i));
      const double most = roundoff.least + roundoff.store * std::abs(x) +
                          kFewRoundings * roundoff.compute * std::min(terms, kOutOfRange);
      to.as_mutable<double>()[i] = std::isfinite(x) ? x + dice.Between(-most, most) : x;
    }
    return to;
  }
};

}  // namespace

// Of constants alone, as the exponent less 1: a moved one would make the power of a negative number
// NaN, and what passes fold is rounded once.
bool RoundingModel::OfConstants(const Node& node) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id == kNoValue || graph_.value(id).kind == ValueKind::kConstant;
  });
}

std::vector<Tensor> RoundingModel::Sample(Roundoff roundoff, uint64_t seed, bool thorough) const {
  Mover mover{roundoff, Dice(seed)};
  std::vector<Tensor> values = values_;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo& info = graph_.value(static_cast<ValueId>(i));
    const bool rounds = info.kind == ValueKind::kConstant && info.type.dtype == DType::kF64 &&
                        values[i].elements() == 1 && !IsShort(values[i].at(0));
    if (rounds) values[i] = mover.Moved(values[i], Tensor());
  }
  for (const Node& node : graph_.nodes()) {
    if (OfConstants(node)) continue;
    std::vector<Tensor> inputs;
    for (ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? Tensor() : values[static_cast<size_t>(id)]);
    if (IsOneOf(node.op->name, {"equal", "not_equal"})) mover.MaybeStore(inputs);
    std::vector<Tensor> outputs = EvaluateNode(*node.op, graph_.Call(node), inputs);
    // Terms that cancel exactly without rounding do not with it.
    std::vector<Tensor> magnitudes(outputs.size());
    if (thorough) magnitudes = Magnitudes(node, graph_.Call(node), inputs, outputs);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const auto id = static_cast<size_t>(node.outputs[k]);
      const Tensor& magnitude = thorough ? magnitudes[k] : magnitudes_[id];
      const bool rounds = Rounds(node, inputs, outputs[k]);
      values[id] = rounds ? mover.Moved(outputs[k], magnitude) : std::move(outputs[k]);
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
        Sample({roundoff.store * scale, roundoff.compute * scale, roundoff.least},
               static_cast<uint64_t>(sample), /*thorough=*/samples > kFewSamples);
    for (const GraphOutput& output : graph_.outputs()) {
      const Tensor& moved = values[static_cast<size_t>(output.value)];
      const Tensor& exact = exact_.at(output.name);
      double& bound = bounds[output.name];
      for (int64_t i = 0; i < exact.elements(); ++i) {
        const double off = std::abs(moved.at(i) - exact.at(i));
        bound = std::isnan(off) ? kInfinity : std::max(bound, off);
      }
    }
  }
  for (auto& [name, bound] : bounds)
    bound = Deviations(roundoff) * bound / scale +
            (4 * roundoff.store + 64 * roundoff.compute) * LargestInRange(exact_.at(name)) +
            4 * roundoff.least;
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
