// x * (1 + erf(x / sqrt(2))) / 2                              -> gelu(x)
// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2     -> gelu(x, approximate="tanh")
//
// Exporters multiply and add these in every order, so nodes are read as polynomials: the argument
// of erf or tanh in x, and the result in x and t, where t is erf's or tanh's value.
#include <array>
#include <cmath>
#include <numbers>

#include "ridge/graph/ops/shared/gelu_formula.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

constexpr int kDeepest = 6;          // nodes from the root or the argument down to x
constexpr double kTolerance = 1e-5;  // of a coefficient: files hold sqrt(2) in f32

// sum of c[i][j] x^i t^j
struct Polynomial {
  std::array<std::array<double, 2>, 4> c{};
};

using MaybePolynomial = std::optional<Polynomial>;

MaybePolynomial Term(int x_power, int t_power, double factor) {
  Polynomial p;
  p.c[static_cast<size_t>(x_power)][static_cast<size_t>(t_power)] = factor;
  return p;
}

MaybePolynomial Sum(const MaybePolynomial& a, const MaybePolynomial& b, double sign) {
  if (!a || !b) return std::nullopt;
  Polynomial p = *a;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 2; ++j) p.c[i][j] += sign * b->c[i][j];
  }
  return p;
}

MaybePolynomial Product(const MaybePolynomial& a, const MaybePolynomial& b) {
  if (!a || !b) return std::nullopt;
  Polynomial p;
  for (size_t k = 0; k < 64; ++k) {
    const size_t i = k % 4, j = k / 4 % 2, m = k / 8 % 4, n = k / 32;
    const double term = a->c[i][j] * b->c[m][n];
    if (term == 0) continue;
    if (i + m > 3 || j + n > 1) return std::nullopt;  // of higher degree: no gelu
    p.c[i + m][j + n] += term;
  }
  return p;
}

// Reads nodes as polynomials in x and t, and notes the results on the way.
class Reader {
 public:
  Reader(const Graph& graph, ValueId x, ValueId t) : graph_(graph), x_(x), t_(t) {}

  MaybePolynomial Read(ValueId id, int depth) {
    if (id == x_) return Term(1, 0, 1);
    if (id == t_) return Term(0, 1, 1);
    if (const std::optional<double> number = SplatOf(graph_, id)) return Term(0, 0, *number);
    const Node* node = graph_.producer(id);
    if (node == nullptr || depth == 0) return std::nullopt;
    inner_.push_back(id);
    return ReadNode(*node, depth - 1);
  }

  const std::vector<ValueId>& inner() const { return inner_; }

 private:
  MaybePolynomial ReadNode(const Node& node, int depth) {
    const std::string& op = node.op->name;
    const bool sum = op == "add" || op == "sub", product = op == "mul";
    if (sum || product) {
      const MaybePolynomial a = Read(node.inputs[0], depth);
      if (!a) return a;
      const MaybePolynomial b = Read(node.inputs[1], depth);
      return product ? Product(a, b) : Sum(a, b, op == "add" ? 1 : -1);
    }
    if (op == "square") return Power(node.inputs[0], 2, depth);
    if (op != "div" && op != "pow") return std::nullopt;
    const std::optional<double> number = SplatOf(graph_, node.inputs[1]);
    if (!number || *number == 0) return std::nullopt;
    if (op == "div") return Product(Read(node.inputs[0], depth), Term(0, 0, 1 / *number));
    return *number == 2 || *number == 3 ? Power(node.inputs[0], *number, depth) : std::nullopt;
  }

  MaybePolynomial Power(ValueId id, double exponent, int depth) {
    const MaybePolynomial base = Read(id, depth);
    const MaybePolynomial square = Product(base, base);
    return exponent == 2 ? square : Product(square, base);
  }

  const Graph& graph_;
  ValueId x_, t_;
  std::vector<ValueId> inner_;
};

bool Matches(const MaybePolynomial& p, const MaybePolynomial& wanted) {
  if (!p || !wanted) return false;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      if (!(std::abs(p->c[i][j] - wanted->c[i][j]) <= kTolerance)) return false;
    }
  }
  return true;
}

// Values at most `depth` nodes below `id`, through the nodes that polynomials are made of.
void Below(const Graph& graph, ValueId id, int depth, std::vector<ValueId>& found) {
  const Node* node = graph.producer(id);
  if (node == nullptr || depth == 0 || SplatOf(graph, id)) return;
  const std::string& op = node->op->name;
  const bool reads =
      op == "mul" || op == "add" || op == "div" || op == "pow" || op == "square" || op == "sub";
  if (!reads) return;
  for (ValueId input : node->inputs) {
    if (SplatOf(graph, input)) continue;
    found.push_back(input);
    Below(graph, input, depth - 1, found);
  }
}

MaybePolynomial Argument(bool use_tanh) {
  if (!use_tanh) return Term(1, 0, 1 / std::numbers::sqrt2);
  return Sum(Term(1, 0, kGeluScale), Term(3, 0, kGeluScale * kGeluCubic), 1);
}

// The gelu whose erf or tanh is `curve`, when x is what it is taken of.
PatternMatch MatchWith(const Graph& graph, const Node& root, const Node& curve, ValueId x) {
  const bool use_tanh = curve.op->name == "tanh";
  const ValueId t = curve.outputs[0], y = root.outputs[0];
  if (!(graph.type(x) == graph.type(y))) return {};
  Reader argument(graph, x, kNoValue), result(graph, x, t);
  if (!Matches(argument.Read(curve.inputs[0], kDeepest), Argument(use_tanh))) return {};
  if (!Matches(result.Read(y, kDeepest), Sum(Term(1, 0, 0.5), Term(1, 1, 0.5), 1))) return {};
  PatternMatch match{FindOp("gelu"), {x}, {}, argument.inner()};
  match.attrs["approximate"] = std::string(use_tanh ? "tanh" : "none");
  match.inner.push_back(t);
  for (ValueId id : result.inner()) {
    if (id != y) match.inner.push_back(id);
  }
  return match;
}

}  // namespace

PatternMatch MatchGelu(const Graph& graph, const Node& root) {
  if (root.op->name != "mul" && root.op->name != "div" && root.op->name != "add") return {};
  std::vector<ValueId> near;
  Below(graph, root.outputs[0], 4, near);
  for (ValueId id : near) {
    const Node* curve = graph.producer(id, "erf");
    if (curve == nullptr) curve = graph.producer(id, "tanh");
    if (curve == nullptr) continue;
    std::vector<ValueId> arguments;
    Below(graph, curve->inputs[0], kDeepest, arguments);
    for (ValueId x : arguments) {
      PatternMatch match = MatchWith(graph, root, *curve, x);
      if (match.op != nullptr) return match;
    }
  }
  return {};
}

}  // namespace ridge
