#include "tests/text/check_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <vector>

#include "ridge/backend/cpu/host_rules.h"
#include "ridge/core/split.h"
#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/lower/pipeline.h"

namespace ridge {
namespace {

using Extents = std::map<std::string, int64_t>;
using Leaves = std::map<std::string, Tensor>;
using Gradients = std::map<std::string, Tensor>;

constexpr const char* kBefore[] = {"none", "only:push_slices,patterns,attention,attention_layout"};
constexpr double kLargeStep = 1e-4, kSmallStep = 1e-6;
constexpr double kSlopeTolerance = 1e-6;  // central differences of a loss of about 1 in f64
constexpr double kTolerance64 = 1e-11, kTolerance32 = 2e-4;

Extents ParseExtents(const std::string& text) {
  Extents extents;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    extents[word.substr(0, equal)] = std::atoll(word.c_str() + equal + 1);
  }
  return extents;
}

// Each extent as it is, and as 1.
std::vector<Extents> Choices(const Extents& extents) {
  std::vector<Extents> choices = {{}};
  for (const auto& [name, extent] : extents) {
    const size_t count = choices.size();
    for (size_t i = 0; i < count; ++i) {
      choices.push_back(choices[i]);
      choices[i][name] = extent;
      choices.back()[name] = 1;
    }
  }
  return choices;
}

// "<B*2>" -> "4".
std::string Substitute(const std::string& text, const Extents& extents) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('<', at), text.size());
    result += text.substr(at, open - at);
    if (open == text.size()) break;
    const size_t close = text.find('>', open);
    const std::string factors = text.substr(open + 1, close - open - 1);
    int64_t product = 1;
    for (std::string_view factor : SplitAt(factors, '*')) {
      const auto known = extents.find(std::string(factor));
      product *= known == extents.end() ? std::atoll(std::string(factor).c_str()) : known->second;
    }
    result += std::to_string(product);
    at = close + 1;
  }
  return result;
}

std::string InF32(std::string text) {
  for (size_t at = text.find("f64["); at != std::string::npos; at = text.find("f64[", at))
    text.replace(at, 3, "f32");
  return text;
}

// Numbers in [-1, 1] by the name, the same in f64 and f32.
Tensor Random(const std::string& name, const TensorType& type) {
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  Tensor tensor(type);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = static_cast<double>(random() % 2001) / 1000 - 1;
    StoreFromDouble(type.dtype, tensor.mutable_data(), i,
                    IsFloat(type.dtype) ? value : static_cast<double>(random() % 2));
  }
  return tensor;
}

bool IsLeaf(const ValueInfo& value) {
  return value.kind == ValueKind::kInput || value.kind == ValueKind::kParameter;
}

Leaves MakeLeaves(const Graph& graph) {
  Leaves leaves;
  for (const ValueInfo& value : graph.values()) {
    if (IsLeaf(value)) leaves[value.name] = Random(value.name, value.type);
  }
  return leaves;
}

// The graph with an output `loss` alone.
Result<Graph> WithLoss(Graph graph) {
  const std::vector<GraphOutput> outputs = graph.outputs();
  graph.ClearOutputs();
  GraphBuilder b(std::move(graph));
  Value loss;
  for (const GraphOutput& output : outputs) {
    const TensorType type = b.graph().type(output.value);
    const Value weights = b.Constant(Random(output.name + ".weights", type), "weights");
    const Value term = Sum(b.At(output.value) * weights);
    loss = loss.valid() ? loss + term : term;
  }
  b.Output("loss", loss);
  return std::move(b).Build();
}

Result<Graph> WithGradients(Graph forward) {
  GraphBuilder b(std::move(forward));
  std::vector<Value> leaves;
  for (size_t id = 0; id < b.graph().values().size(); ++id) {
    const ValueInfo& value = b.graph().values()[id];
    if (IsLeaf(value) && IsFloat(value.type.dtype))
      leaves.push_back(b.At(static_cast<ValueId>(id)));
  }
  const Value loss = b.At(b.graph().outputs()[0].value);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> grads, AppendGradients(b, loss, leaves));
  for (size_t i = 0; i < leaves.size(); ++i) b.Output(b.graph().value(leaves[i].id).name, grads[i]);
  return std::move(b).Build();
}

Result<Gradients> Evaluate(const Graph& graph, const Leaves& leaves) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(graph, leaves));
  Gradients outputs;
  for (const GraphOutput& output : graph.outputs())
    outputs[output.name] = values[static_cast<size_t>(output.value)];
  return outputs;
}

Result<Graph> Rewrite(const Graph& graph, const std::string& spec) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(spec));
  return RunPasses(graph, passes, HostRules());
}

double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

// The slope of the loss as one leaf moves along a direction.
Result<double> Slope(const Graph& forward, Leaves leaves, const std::string& leaf,
                     const Tensor& direction, double step) {
  const Tensor start = leaves.at(leaf);
  double ends[2] = {0, 0};
  for (int side = 0; side < 2; ++side) {
    Tensor moved(start.type());
    for (int64_t i = 0; i < moved.elements(); ++i) {
      const double by = (side == 0 ? step : -step) * direction.at(i);
      StoreFromDouble(DType::kF64, moved.mutable_data(), i, start.at(i) + by);
    }
    leaves[leaf] = moved;
    RIDGE_ASSIGN_OR_RETURN(const Gradients loss, Evaluate(forward, leaves));
    ends[side] = loss.at("loss").at(0);
  }
  return (ends[0] - ends[1]) / (2 * step);
}

// A kink near one step is not near the other.
Result<std::string> CompareWithSlopes(const Graph& forward, const Leaves& leaves,
                                      const Gradients& gradients) {
  for (const auto& [name, gradient] : gradients) {
    if (name == "loss") continue;
    const Tensor direction = Random(name + ".direction", gradient.type());
    const double expected = Dot(gradient, direction);
    double slope = 0;
    bool agrees = false;
    for (double step : {kLargeStep, kSmallStep}) {
      RIDGE_ASSIGN_OR_RETURN(slope, Slope(forward, leaves, name, direction, step));
      const double most =
          kSlopeTolerance * (1 + std::abs(slope)) * (kLargeStep / step > 1 ? 10 : 1);
      agrees = agrees || std::abs(slope - expected) <= most;
    }
    if (!agrees)
      return fmt::format("the gradient of {} gives {}, differences {}", name, expected, slope);
  }
  return std::string();
}

// The first output that is not the same, in parts of the largest element.
std::string Compare(const Gradients& expected, const Gradients& got, double tolerance) {
  for (const auto& [name, tensor] : expected) {
    const Tensor& other = got.at(name);
    double largest = 1, difference = 0;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      largest = std::max(largest, std::abs(tensor.at(i)));
      const double off = std::abs(tensor.at(i) - other.at(i));
      difference = std::max(difference, std::isnan(off) ? INFINITY : off);
    }
    if (tensor.type().dims != other.type().dims || difference > tolerance * largest)
      return fmt::format("{} is off by {} of {}", name, difference, largest);
  }
  return "";
}

std::vector<std::string> PassesAfter() {
  std::vector<std::string> specs = {"none", ""};
  for (const PassInfo& pass : AllPasses()) {
    if (pass.run != nullptr) specs.push_back(std::string("only:") + pass.name);
  }
  return specs;
}

// With rewrites before and after differentiation, each compared with `expected`.
Result<std::string> CompareRewritten(const Graph& forward, const Gradients& expected,
                                     double tolerance) {
  for (const char* before : kBefore) {
    RIDGE_ASSIGN_OR_RETURN(Graph rewritten, Rewrite(forward, before));
    RIDGE_ASSIGN_OR_RETURN(const Graph whole, WithGradients(std::move(rewritten)));
    for (const std::string& after : PassesAfter()) {
      RIDGE_ASSIGN_OR_RETURN(const Graph last, Rewrite(whole, after));
      RIDGE_ASSIGN_OR_RETURN(const Gradients got, Evaluate(last, MakeLeaves(forward)));
      const std::string wrong = Compare(expected, got, tolerance);
      if (wrong.empty()) continue;
      return fmt::format("passes '{}' before and '{}' after: {}\n{}", before, after, wrong,
                         PrintGraph(last));
    }
  }
  return std::string();
}

Result<std::string> CheckChoice(const std::string& text) {
  RIDGE_ASSIGN_OR_RETURN(Graph parsed, ParseGraph(text, "graph"));
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, WithLoss(std::move(parsed)));
  RIDGE_ASSIGN_OR_RETURN(const Graph plain, WithGradients(forward));
  const Leaves leaves = MakeLeaves(forward);
  RIDGE_ASSIGN_OR_RETURN(const Gradients gradients, Evaluate(plain, leaves));
  RIDGE_ASSIGN_OR_RETURN(std::string wrong, CompareWithSlopes(forward, leaves, gradients));
  if (!wrong.empty()) return wrong;
  RIDGE_ASSIGN_OR_RETURN(wrong, CompareRewritten(forward, gradients, kTolerance64));
  if (!wrong.empty()) return "f64, " + wrong;
  RIDGE_ASSIGN_OR_RETURN(Graph parsed32, ParseGraph(InF32(text), "graph"));
  RIDGE_ASSIGN_OR_RETURN(const Graph forward32, WithLoss(std::move(parsed32)));
  RIDGE_ASSIGN_OR_RETURN(wrong, CompareRewritten(forward32, gradients, kTolerance32));
  return wrong.empty() ? wrong : "f32, " + wrong;
}

}  // namespace

std::string CheckGradients(const std::string& graph_text, const std::string& extents) {
  const std::vector<Extents> choices = Choices(ParseExtents(extents));
  for (const Extents& choice : choices) {
    const Result<std::string> wrong = CheckChoice(Substitute(graph_text, choice));
    const std::string text = wrong.ok() ? *wrong : wrong.status().message();
    if (text.empty()) continue;
    std::string at;
    for (const auto& [name, extent] : choice) at += fmt::format("{}={} ", name, extent);
    return fmt::format("at {}: {}\n", at, text);
  }
  return fmt::format("right at {} choices of the extents\n", choices.size());
}

}  // namespace ridge
