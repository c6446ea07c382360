// Pointwise operators and `fused`: one pass, a thread takes a few neighbours.
//
// All steps are computed in R, which is float unless an operand or a step needs double, and rounded
// to the step's dtype.  Full-size tensors are moved in packs; an input that is repeated is read
// where it lies, one of a single element once a thread.  A thread reads all it needs of the inputs
// before it writes, and writes only where it read: any output may overwrite a full-size input.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/pointwise_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/expression.h"

namespace ridge::cuda {
namespace {

struct PointwiseText {
  std::string_view op, value;
};
constexpr PointwiseText kPointwiseRows[] = {
#define RIDGE_ROW(op, value) {op, value},
#include "ridge/backend/cuda/kernels/pointwise_rows.def"
#undef RIDGE_ROW
};

// Functions that the rows use.
constexpr std::string_view kPointwiseFunctions = R"cuda(
typedef $R R;
RIDGE_FUNCTION R Sigmoid(R x) { return R(1) / (R(1) + exp(-x)); }
// tanh(ln(1 + z)) = n / (n + 2) with n = z (z + 2); beyond 20 it is 1.
RIDGE_FUNCTION R Mish(R x) {
  if (x > R(20)) return x;
  const R z = exp(x), n = z * (z + R(2));
  return x * (n / (n + R(2)));
}
RIDGE_FUNCTION R Phi(R x) { return R(0.5) * (R(1) + erf(x * R(0.70710678118654752))); }
RIDGE_FUNCTION R Gelu(R x) { return x * Phi(x); }
RIDGE_FUNCTION R GeluSlope(R x) {
  return Phi(x) + x * exp(R(-0.5) * x * x) * R(0.3989422804014327);
}
RIDGE_FUNCTION R GeluTanhOf(R x) {
  return tanh(R(0.7978845608028654) * (x + R(0.044715) * x * x * x));
}
RIDGE_FUNCTION R GeluTanh(R x) { return R(0.5) * x * (R(1) + GeluTanhOf(x)); }
RIDGE_FUNCTION R GeluTanhSlope(R x) {
  const R t = GeluTanhOf(x), du = R(0.7978845608028654) * (R(1) + R(0.134145) * x * x);
  return R(0.5) * (R(1) + t) + R(0.5) * x * (R(1) - t * t) * du;
}
// With the sign of b.
RIDGE_FUNCTION R FloorMod(R a, R b) {
  const R rest = fmod(a, b);
  if (rest == 0) return b < 0 ? R(-0.0) : R(0);
  return (rest < 0) == (b < 0) ? rest : rest + b;
}
// Two's complement of 64 bits.
RIDGE_FUNCTION u64 BitsOf(R x) {
  u64 bits;
  if (x < 0) Store((i64*)&bits, 0, x);
  else Store(&bits, 0, x);
  return bits;
}
// The low bits of a whole number: those below `end`, then negative ones.
RIDGE_FUNCTION double Wrapped(double x, double modulus, double end) {
  if (!(fabs(x) < Infinity<double>())) return 0;
  double low = fmod(trunc(x), modulus);
  if (low < 0) low += modulus;
  return low < end ? low : low - modulus;
}
RIDGE_FUNCTION R NumberOf(u64 bits, bool negative) { return negative ? R((i64)bits) : R(bits); }
)cuda";

constexpr std::string_view kPointwiseKernel = R"cuda(
RIDGE_KERNEL void pointwise($parameters) {
$scalars  for (i64 group = Thread(); group < $groups; group += Threads()) {
$loads#pragma unroll
    for (int k = 0; k < $lanes; ++k) {
      const $Index e = ($Index)group * $lanes + k;
$steps    }
$stores  }
}
)cuda";

std::string KeyOf(const OpDef& op, const AttrMap& attrs) {
  const auto form = attrs.find("approximate");
  if (form == attrs.end() || attrs.text("approximate") == "none") return op.name;
  return op.name + "/" + attrs.text("approximate");
}

const PointwiseText* FindRow(const OpDef& op, const AttrMap& attrs) {
  const std::string key = KeyOf(op, attrs);
  for (const PointwiseText& row : kPointwiseRows) {
    if (row.op == key) return &row;
  }
  return nullptr;
}

// Whether a cast keeps low bits.
bool Wraps(const ExpressionStep& step, DType to) {
  return step.op->name == "cast" && !IsFloat(to) && to != DType::kBool &&
         step.attrs.integer("saturate") == 0;
}

std::string WrappedText(DType to) {
  const double modulus = std::ldexp(1.0, IntegerBits(to));
  const double end = IsSigned(to) ? modulus / 2 : modulus;
  return fmt::format("Wrapped(a, {:.1f}, {:.1f})", modulus, end);
}

std::string AttrLiteral(const Attr& attr) {
  if (const auto* number = std::get_if<double>(&attr)) return Literal(*number);
  if (const auto* integer = std::get_if<int64_t>(&attr)) {
    return Literal(static_cast<double>(*integer));
  }
  return "";
}

}  // namespace

std::string PointwiseFunctions(const std::string& compute) {
  return FillText(kPointwiseFunctions, {{"R", compute}});
}

std::optional<std::string> PointwiseValue(const OpDef& op, const AttrMap& attrs) {
  const PointwiseText* row = FindRow(op, attrs);
  if (row == nullptr) return std::nullopt;
  std::vector<std::pair<std::string_view, std::string>> numbers;
  for (const auto& [name, attr] : attrs) numbers.emplace_back(name, AttrLiteral(attr));
  return FillText(row->value, numbers);
}

namespace {

class PointwiseWriter {
 public:
  PointwiseWriter(const Expression& expression, const ExpressionTypes& types, const OpCall& call)
      : expression_(expression), types_(types), call_(call), compute_(ComputeTypeOf(call)) {
    for (const DType step : types_.steps) {
      const char* type = ComputeType(step);
      if (type != nullptr && std::strcmp(type, "double") == 0) compute_ = "double";
    }
    elements_ = ElementCount(types_.dims);
    lanes_ = elements_ % 4 == 0 ? 4 : 1;
  }

  const char* Write(KernelText& text) {
    for (size_t i = 0; i < call_.inputs.size(); ++i) AddInput(i);
    for (size_t s = 0; s < expression_.steps.size(); ++s) {
      if (const char* reason = AddStep(s); reason != nullptr) return reason;
    }
    for (size_t o = 0; o < expression_.outputs.size(); ++o) AddOutput(o);
    const int64_t groups = elements_ / lanes_;
    text.source = PointwiseFunctions(compute_) +
                  FillText(kPointwiseKernel, {{"parameters", parameters_},
                                              {"scalars", scalars_},
                                              {"groups", fmt::format("{}ll", groups)},
                                              {"loads", loads_},
                                              {"lanes", std::to_string(lanes_)},
                                              {"Index", IndexType(elements_)},
                                              {"steps", steps_},
                                              {"stores", stores_}});
    text.launches = {{"pointwise", BlocksFor(groups), kBlockThreads, arguments_}};
    return nullptr;
  }

 private:
  void AddParameter(const std::string& declaration, Argument argument) {
    parameters_ += (parameters_.empty() ? "" : ", ") + declaration;
    arguments_.push_back(argument);
  }

  void AddInput(size_t i) {
    const TensorType& type = call_.inputs[i];
    const char* stored = StorageType(type.dtype);
    AddParameter(fmt::format("const {}* i{}", stored, i), Argument::Input(static_cast<int>(i)));
    if (type.elements() == 1) {
      scalars_ += fmt::format("  const R x{0} = (R)Load(i{0}, 0);\n", i);
    } else if (type.elements() == elements_) {
      loads_ += fmt::format("    const Pack<{0}, {2}> p{1} = LoadPack<{2}>(i{1}, group);\n", stored,
                            i, lanes_);
      steps_ += fmt::format("      const R x{0} = (R)Load(p{0}.at, k);\n", i);
    } else {
      const Dims strides = BroadcastStrides(type.dims, types_.dims);
      steps_ += fmt::format("      const R x{0} = (R)Load(i{0}, {1});\n", i,
                            OffsetText(types_.dims, strides, "e"));
    }
  }

  const char* AddStep(size_t s) {
    const ExpressionStep& step = expression_.steps[s];
    const DType to = types_.steps[s];
    if (StorageType(to) == nullptr) return refusal::kDType;
    std::optional<std::string> value = PointwiseValue(*step.op, step.attrs);
    if (!value) return refusal::kExpression;
    if (Wraps(step, to)) value = WrappedText(to);
    steps_ += fmt::format("      R t{};\n      {{\n", s);
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const ExpressionOperand& operand = step.operands[k];
      steps_ += fmt::format("        const R {} = {}{};\n", "abc"[k], operand.is_step ? 't' : 'x',
                            operand.index);
    }
    const bool rounds = compute_ != StorageType(to);
    steps_ +=
        rounds ? fmt::format("        t{} = As<{}>(R({}));\n      }}\n", s, StorageType(to), *value)
               : fmt::format("        t{} = {};\n      }}\n", s, *value);
    return nullptr;
  }

  void AddOutput(size_t o) {
    const auto step = static_cast<size_t>(expression_.outputs[o]);
    const char* stored = StorageType(types_.steps[step]);
    AddParameter(fmt::format("{}* o{}", stored, o), Argument::Output(static_cast<int>(o)));
    loads_ += fmt::format("    Pack<{}, {}> q{};\n", stored, lanes_, o);
    steps_ += fmt::format("      Store(q{}.at, k, t{});\n", o, step);
    stores_ += fmt::format("    StorePack(o{0}, group, q{0});\n", o);
  }

  const Expression& expression_;
  const ExpressionTypes& types_;
  const OpCall& call_;
  std::string compute_;
  int64_t elements_ = 0;
  int lanes_ = 1;
  std::string parameters_, scalars_, loads_, steps_, stores_;
  std::vector<Argument> arguments_;
};

const char* WritePointwise(const OpDef& op, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const Result<Expression> expression = ExpressionOf(op, call);
  if (!expression.ok()) return refusal::kExpression;
  ExpressionTypes types{call.outputs[0].dims, {call.outputs[0].dtype}};
  if (op.name == "fused") {
    Result<ExpressionTypes> inferred = InferExpression(*expression, call.inputs, call.where);
    if (!inferred.ok()) return refusal::kExpression;
    types = std::move(*inferred);
  }
  return PointwiseWriter(*expression, types, call).Write(text);
}

}  // namespace

TextKernelDef PointwiseTextKernel() {
  return {.name = "cuda.pointwise", .ops = {"*"}, .write = WritePointwise};
}

}  // namespace ridge::cuda
