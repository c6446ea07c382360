// Pointwise operators and `fused`: one pass, a thread takes a few neighbours.
//
// All steps are computed in R, which is float unless an operand or a step needs double, and rounded
// to the step's dtype.  Full-size tensors are moved in packs, several of which a thread has under
// way; an input that is repeated is read where it lies, in packs where it has runs of them, one of
// a single element once a thread.  A thread reads all it needs of the inputs before it writes, and
// writes only where it read: any output may overwrite a full-size input.  In channels-last the same
// text runs on the arrays as they are stored.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/pointwise_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
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
$scalars  const $Index threads = ($Index)Threads();
  for ($Index first = ($Index)Thread(); first < $groups; first += $each * threads) {
$packs#pragma unroll
    for (int j = 0; j < $each; ++j) {
      const $Index group = first + j * threads;
      if (group < $groups) {
$loads      }
    }
#pragma unroll
    for (int j = 0; j < $each; ++j) {
      const $Index group = first + j * threads;
      if (group >= $groups) continue;
$runs#pragma unroll
      for (int k = 0; k < $lanes; ++k) {
        const $Index e = group * $lanes + k;
$steps      }
$stores    }
  }
}
)cuda";

// Of full-size tensors, what a thread moves at once.
// A store of more than 16 bytes would fill only half of each of its sectors.
constexpr int64_t kPackBytes = 16, kWidestLoadBytes = 32, kMostLanes = 8;

// How an input lies along neighbours of the output: `extent` of them share an element (stride 0) or
// have neighbours (stride 1).
struct InnermostRun {
  int64_t extent = 1, stride = 0;
};

InnermostRun RunOf(const Dims& dims, const Dims& strides) {
  InnermostRun run;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (run.extent == 1) run.stride = strides[d] == 0 ? 0 : 1;
    if (strides[d] != run.stride * run.extent) break;
    run.extent *= dims[d];
  }
  return run;
}

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
    ChoosePacks();
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
                                              {"groups", std::to_string(groups)},
                                              {"each", std::to_string(each_)},
                                              {"packs", packs_},
                                              {"loads", loads_},
                                              {"runs", runs_},
                                              {"lanes", std::to_string(lanes_)},
                                              {"Index", IndexType(elements_)},
                                              {"steps", steps_},
                                              {"stores", stores_}});
    text.launches = {{"pointwise", BlocksFor(CeilDiv(groups, each_)), kBlockThreads, arguments_}};
    return nullptr;
  }

 private:
  bool IsFull(size_t i) const { return call_.inputs[i].elements() == elements_ && elements_ != 1; }

  void ChoosePacks() {
    int64_t narrowest = kPackBytes, read = 0;
    lanes_ = kMostLanes;
    const auto add = [&](DType dtype, int64_t most_bytes) {
      narrowest = std::min(narrowest, BytesPerElement(dtype));
      lanes_ = std::min(lanes_, most_bytes / BytesPerElement(dtype));
    };
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      if (!IsFull(i)) continue;
      add(call_.inputs[i].dtype, kWidestLoadBytes);
      read += BytesPerElement(call_.inputs[i].dtype);
    }
    for (const TensorType& type : call_.outputs) add(type.dtype, kPackBytes);
    lanes_ = std::min(lanes_, kPackBytes / narrowest);
    while (elements_ % lanes_ != 0) lanes_ /= 2;
    each_ = PacksAhead(elements_ / lanes_, read * lanes_);
  }

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
    } else if (IsFull(i)) {
      packs_ += fmt::format("    Pack<{}, {}> p{}[{}];\n", stored, lanes_, i, each_);
      loads_ += fmt::format("        p{0}[j] = LoadPack<{1}>(i{0}, group);\n", i, lanes_);
      steps_ += fmt::format("        const R x{0} = (R)Load(p{0}[j].at, k);\n", i);
    } else {
      AddRepeated(i);
    }
  }

  void AddRepeated(size_t i) {
    const Dims strides = BroadcastStrides(call_.inputs[i].dims, types_.dims);
    const InnermostRun run = RunOf(types_.dims, strides);
    const std::string at = OffsetText(types_.dims, strides, fmt::format("(group * {})", lanes_));
    if (run.extent % lanes_ != 0) {
      steps_ += fmt::format("        const R x{0} = (R)Load(i{0}, {1});\n", i,
                            OffsetText(types_.dims, strides, "e"));
    } else if (run.stride == 0) {
      runs_ += fmt::format("      const R x{0} = (R)Load(i{0}, {1});\n", i, at);
    } else {
      runs_ += fmt::format("      const Pack<{0}, {1}> p{2} = LoadPack<{1}>(i{2} + ({3}), 0);\n",
                           StorageType(call_.inputs[i].dtype), lanes_, i, at);
      steps_ += fmt::format("        const R x{0} = (R)Load(p{0}.at, k);\n", i);
    }
  }

  const char* AddStep(size_t s) {
    const ExpressionStep& step = expression_.steps[s];
    const DType to = types_.steps[s];
    if (StorageType(to) == nullptr) return refusal::kDType;
    std::optional<std::string> value = PointwiseValue(*step.op, step.attrs);
    if (!value) return refusal::kExpression;
    if (Wraps(step, to)) value = WrappedText(to);
    steps_ += fmt::format("        R t{};\n        {{\n", s);
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const ExpressionOperand& operand = step.operands[k];
      steps_ += fmt::format("          const R {} = {}{};\n", "abc"[k], operand.is_step ? 't' : 'x',
                            operand.index);
    }
    const bool rounds = compute_ != StorageType(to);
    steps_ += rounds ? fmt::format("          t{} = As<{}>(R({}));\n        }}\n", s,
                                   StorageType(to), *value)
                     : fmt::format("          t{} = {};\n        }}\n", s, *value);
    return nullptr;
  }

  void AddOutput(size_t o) {
    const auto step = static_cast<size_t>(expression_.outputs[o]);
    const char* stored = StorageType(types_.steps[step]);
    AddParameter(fmt::format("{}* o{}", stored, o), Argument::Output(static_cast<int>(o)));
    runs_ += fmt::format("      Pack<{}, {}> q{};\n", stored, lanes_, o);
    steps_ += fmt::format("        Store(q{}.at, k, t{});\n", o, step);
    stores_ += fmt::format("      StorePack(o{0}, group, q{0});\n", o);
  }

  const Expression& expression_;
  const ExpressionTypes& types_;
  const OpCall& call_;
  std::string compute_;
  int64_t elements_ = 0;
  int64_t lanes_ = 1, each_ = 1;  // elements of a pack, packs of a thread
  std::string parameters_, scalars_, packs_, loads_, runs_, steps_, stores_;
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

// Of an operand beside outputs of so many dimensions: as a row-major array; nullopt: it has none in
// either layout.
std::optional<TensorType> StoredBeside(const TensorType& type, int rank) {
  if (type.elements() == 1) return type;
  TensorType whole{type.dtype, Dims(static_cast<size_t>(rank - type.rank()), 1)};
  whole.dims.insert(whole.dims.end(), type.dims.begin(), type.dims.end());
  if (type.rank() < rank && (HasLayouts(whole) || HasLayouts(type))) return std::nullopt;
  return StoredChannelsLast(whole);
}

const char* WriteChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  const int rank = call.outputs[0].rank();
  OpCall stored = call;
  for (TensorType& type : stored.outputs) {
    if (!HasLayouts(type)) return refusal::kLayout;
    type = StoredChannelsLast(type);
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::optional<TensorType> type = StoredBeside(call.inputs[i], rank);
    if (!type) return refusal::kLayout;
    stored.inputs[i] = *type;
  }
  return WritePointwise(op, stored, text);
}

}  // namespace

TextKernelDef PointwiseTextKernel() {
  return {.name = "cuda.pointwise",
          .ops = {"*"},
          .write = WritePointwise,
          .write_channels_last = WriteChannelsLast};
}

}  // namespace ridge::cuda
