#include <array>

#include "tests/generate/families.h"

namespace ridge {
namespace {

struct Unary {
  const char* op;
  double low = -40, high = 40;  // where it is defined, and its slope moderate
};

// Others are drawn over the whole range.
constexpr Unary kDomains[] = {{"exp", -6, 3},      {"log", 0.2, 40},        {"sqrt", 0.1, 40},
                              {"rsqrt", 0.2, 40},  {"reciprocal", 0.3, 40}, {"square", -6, 6},
                              {"tan", -1.2, 1.2},  {"asin", -0.9, 0.9},     {"acos", -0.9, 0.9},
                              {"sinh", -3, 3},     {"cosh", -3, 3},         {"acosh", 1.2, 40},
                              {"atanh", -0.9, 0.9}};

Unary DomainOf(const OpDef& op) {
  for (const Unary& domain : kDomains) {
    if (op.name == domain.op) return domain;
  }
  return {op.name.c_str()};
}

// Every differentiable pointwise operator of one input but cast.
const std::vector<Unary>& AllUnary() {
  static const std::vector<Unary> all = [] {
    std::vector<Unary> unary;
    for (const OpDef& op : AllOps()) {
      const bool pointwise = op.elementwise != nullptr && op.input_names.size() == 1;
      if (pointwise && op.gradient != nullptr && op.required_attrs.empty())
        unary.push_back(DomainOf(op));
    }
    return unary;
  }();
  return all;
}

constexpr Unary kUsual[] = {{"relu"}, {"gelu"}, {"silu"},     {"tanh"}, {"sigmoid"},
                            {"relu"}, {"neg"},  {"softplus"}, {"clip"}, {"hard_swish"}};

AttrMap UnaryAttrs(Dice& dice, const std::string& op) {
  if (op == "elu" || op == "leaky_relu") return {{"alpha", dice.Between(0.05, 1.5)}};
  if (op == "hard_sigmoid") return {{"alpha", dice.Between(0.1, 0.4)}, {"beta", 0.5}};
  if (op == "gelu") return {{"approximate", std::string(dice.Percent(40) ? "tanh" : "none")}};
  if (op != "clip") return {};
  AttrMap attrs;
  if (dice.Percent(80)) attrs["min"] = dice.Percent(30) ? 0.0 : dice.Between(-1, 0.2);
  if (dice.Percent(80)) attrs["max"] = dice.Percent(30) ? 6.0 : dice.Between(0.3, 2);
  return attrs;
}

Value Apply(Sketch& s, const Unary& unary, Value x) {
  return s.Op(unary.op, {s.Within(x, unary.low, unary.high)}, UnaryAttrs(s.dice, unary.op));
}

// Dims that broadcast to `dims`: extents become 1, leading ones go.
Dims Narrowed(Dice& dice, Dims dims) {
  while (!dims.empty() && dice.Percent(30)) dims.erase(dims.begin());
  for (int64_t& extent : dims) {
    if (dice.Percent(30)) extent = 1;
  }
  return dims;
}

// Something that broadcasts with a.
Value Partner(Sketch& s, Value a) {
  const int64_t kind = s.dice.Below(100);
  if (kind < 15) return a;
  if (kind < 30) return s.Scalar(s.dice.OneOf({0.0, 1.0, 0.5, -2.0, 3.0}));
  if (kind < 65) {
    const Value other = s.Any();
    if (BroadcastDims(s.dims(a), s.dims(other)).ok()) return other;
  }
  return s.Parameter(Narrowed(s.dice, s.dims(a)));
}

struct Binary {
  const char* op;
  double low_a = -40, high_a = 40, low_b = -40, high_b = 40;
};

constexpr Binary kBinary[] = {{"add"},
                              {"sub"},
                              {"mul"},
                              {"add"},
                              {"mul"},
                              {"div", -40, 40, 0.3, 40},
                              {"pow", 0.3, 4, -2, 3},
                              {"maximum"},
                              {"minimum"},
                              {"mod", -40, 40, 0.6, 40},
                              {"fmod", -40, 40, 0.6, 40}};

Value Condition(Sketch& s, Value x) {
  const char* op =
      s.dice.OneOf({"greater", "less", "greater_equal", "less_equal", "equal", "not_equal"});
  Value condition = s.Op(op, {x, Partner(s, x)});
  if (s.dice.Percent(20)) condition = s.Op("logical_not", {condition});
  if (s.dice.Percent(20)) {
    const Value other = s.Op("less", {x, s.Scalar(0.3)});
    condition = s.Op(s.dice.Percent(50) ? "logical_and" : "logical_or", {condition, other});
  }
  return condition;
}

}  // namespace

Value RandomActivation(Sketch& s, Value x) { return Apply(s, s.dice.OneOf(kUsual), x); }

void DrawUnary(Sketch& s) {
  const Value x = s.Any();
  s.Keep(s.dice.Percent(40) ? RandomActivation(s, x) : Apply(s, s.dice.OneOf(AllUnary()), x));
}

void DrawBinary(Sketch& s) {
  const Binary& binary = s.dice.OneOf(kBinary);
  Value a = s.Any(), b = Partner(s, a);
  if (s.dice.Percent(40)) std::swap(a, b);
  a = s.Within(a, binary.low_a, binary.high_a);
  b = s.Within(b, binary.low_b, binary.high_b);
  s.Keep(s.Op(binary.op, {a, b}));
}

void DrawSelect(Sketch& s) {
  const Value x = s.Any(), condition = Condition(s, x);
  if (s.dice.Percent(25)) {
    s.Keep(s.Mul(x, s.Op("cast", {condition}, {{"to", "f64"}})));
    return;
  }
  Value a = Partner(s, x), b = s.dice.Percent(50) ? x : Partner(s, x);
  if (s.dice.Percent(50)) std::swap(a, b);
  s.Keep(s.Op("where", {condition, a, b}));
}

void DrawBackwardPointwise(Sketch& s) {
  const Value x = s.Any(), dy = s.dice.Percent(50) ? s.Parameter(s.dims(x)) : s.Op("sin", {x});
  const char* op = s.dice.OneOf({"relu_grad", "gelu_grad", "silu_grad"});
  s.Keep(
      s.Op(op, {dy, x}, std::string(op) == "gelu_grad" ? UnaryAttrs(s.dice, "gelu") : AttrMap{}));
}

// t = a view of x;  t + f(t): what a residual block does behind a change of layout.
void DrawViewReadTwice(Sketch& s) {
  Value t = s.AsRank(s.Any(), 3);
  if (s.dice.Percent(50)) t = s.Reshape(t, s.RandomFactors(s.elements(t), 3));
  t = s.Transpose(t, s.dice.Shuffled(3));
  if (!t.valid()) return;
  s.Keep(t);
  s.Keep(s.Add(t, RandomActivation(s, t)));
}

// x + f(x), and f(x) * x.
void DrawResidual(Sketch& s) {
  const Value x = s.Any(), y = s.Recent();
  if (s.dims(x) == s.dims(y)) s.Keep(s.Op(s.dice.Percent(70) ? "add" : "mul", {x, y}));
}

void DrawAgain(Sketch& s) {
  const auto count = static_cast<int64_t>(s.b().graph().nodes().size());
  if (count == 0) return;
  const Node node = s.b().graph().node(static_cast<NodeId>(s.dice.Below(count)));
  std::vector<Value> inputs;
  for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? Sketch::Absent() : s.b().At(id));
  const std::vector<Value> outputs = s.Outputs(node.op->name.c_str(), inputs, node.attrs);
  const bool floats = outputs[0].valid() && IsFloat(outputs[0].dtype());
  if (floats) s.Keep(outputs[0]);
}

}  // namespace ridge
