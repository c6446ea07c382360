// sgd_update and adam_update: one sweep in packs; with moments as codes a block takes the 256
// elements of one absmax at a time.
#include "ridge/graph/ops/shared/optimizer.h"

#include <fmt/format.h>

#include <utility>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/update_text.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kSweepText = R"cuda(
RIDGE_KERNEL void update($parameters) {
$scalars
  for ($Index group = Thread(); group < $groups; group += Threads()) {
$body
  }
}
)cuda";

constexpr std::string_view kCodedText = R"cuda(
RIDGE_KERNEL void update($parameters) {
  __shared__ R scratch[32];
$scalars
  for (i64 block = blockIdx.x; block < $blocks; block += gridDim.x) {
    const i64 e = block * 256 + threadIdx.x;
    const bool counts = e < $elements;
    const R param = counts ? (R)Load(param_in, e) : R(0);
    const R grad = counts ? (R)Load(grad_in, e)$scaled : R(0);
$load
$step
$store
    if (counts) Store(param_out, e, next);
  }
}
)cuda";

// Where `apply` is false, what does not lie where it was is copied there.
constexpr std::string_view kKeepText = R"cuda(
template <class T> RIDGE_FUNCTION void Keep(const T* from, T* to, i64 count) {
  if (from == to) return;
  for (i64 i = Thread(); i < count; i += Threads()) to[i] = from[i];
}
)cuda";

class UpdateWriter {
 public:
  UpdateWriter(const OpCall& call, UpdateText update)
      : call_(call), update_(std::move(update)), elements_(call.inputs[0].elements()) {
    Add(fmt::format("const {0}* param_in, const {0}* grad_in, {0}* param_out", stored()),
        {Argument::Input(0), Argument::Input(1), Argument::Output(0)});
    for (size_t i = 0; i < update_.scalars.size(); ++i)
      AddInput(update_.scalars[i], update_.names[i]);
    for (const MomentText& moment : update_.moments) {
      parameters_ += moment.Parameters();
      moment.AddArguments(arguments_);
    }
    if (may_skip()) AddInput(update_.apply, "apply");
    if (has_scale()) AddInput(update_.apply + 1, "grad_scale");
  }

  void Write(KernelText& text) {
    text.source = fmt::format("typedef {} R;\n", ComputeType(call_.inputs[0].dtype));
    if (may_skip()) text.source += kKeepText;
    const bool coded = !update_.moments.empty() && update_.moments[0].coded();
    text.source += coded ? Coded() : Sweep();
    const int64_t blocks = coded ? BlocksForRows(CodeBlocks(elements_)) : BlocksFor(Groups());
    text.launches = {{"update", blocks, kBlockThreads, arguments_}};
  }

 private:
  const char* stored() const { return StorageType(call_.inputs[0].dtype); }
  bool may_skip() const { return call_.has_input(update_.apply); }
  bool has_scale() const { return call_.has_input(update_.apply + 1); }
  std::string ScaledText() const { return has_scale() ? " * grad_scale" : ""; }

  // Before all else.
  std::string SkipText() const {
    const char* scale = has_scale() ? "  const R grad_scale = (R)Load(grad_scale_in, 0);\n" : "";
    if (!may_skip()) return scale;
    std::string kept = fmt::format("    Keep(param_in, param_out, {});\n", elements_);
    kept += OfMoments([&](auto& m) { return m.KeepText(elements_); });
    return "  if (!(bool)Load(apply_in, 0)) {\n" + kept + "    return;\n  }\n" + scale;
  }

  int Pack() const { return UpdatePack(call_.inputs[0].dtype, elements_); }
  int64_t Groups() const { return elements_ / Pack(); }

  void Add(const std::string& declaration, std::vector<Argument> arguments) {
    parameters_ += (parameters_.empty() ? "" : ", ") + declaration;
    arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
  }
  void AddInput(size_t i, const char* name) {
    Add(fmt::format("const {}* {}_in", StorageType(call_.inputs[i].dtype), name),
        {Argument::Input(static_cast<int>(i))});
  }

  template <class F>
  std::string OfMoments(F text) const {
    std::string all;
    for (const MomentText& moment : update_.moments) all += text(moment);
    return all;
  }

  std::string Sweep() {
    std::string source, scalars = SkipText() + update_.scalars_text, store;
    if (!update_.moments.empty() && update_.moments[0].rounded()) {
      AddInput(update_.rng, "rng");
      source = RoundingText(call_.integer("stream"));
      scalars += "\n  const ElementKey key = ElementKeyOf(rng_in);";
      store =
          fmt::format("      const u32 word = ElementWord(key, (u32)(group * {} + k));\n", Pack());
    }
    return source + FillText(kSweepText,
                             {{"parameters", parameters_},
                              {"scalars", scalars},
                              {"Index", IndexType(elements_)},
                              {"groups", std::to_string(Groups())},
                              {"body", PackText(update_, stored(), Pack(), has_scale(), store)}});
  }

  std::string Coded() const {
    return OfMoments([](auto& m) { return m.Functions(); }) +
           FillText(kCodedText, {{"parameters", parameters_},
                                 {"scalars", SkipText() + update_.scalars_text},
                                 {"blocks", std::to_string(CodeBlocks(elements_))},
                                 {"elements", std::to_string(elements_)},
                                 {"scaled", ScaledText()},
                                 {"load", OfMoments([](auto& m) { return m.LoadCodeText(); })},
                                 {"step", update_.step},
                                 {"store", OfMoments([](auto& m) { return m.StoreCodeText(); })}});
  }

  const OpCall& call_;
  const UpdateText update_;
  const int64_t elements_;
  std::string parameters_;
  std::vector<Argument> arguments_;
};

const char* WriteAdam(const OpDef&, const OpCall& call, KernelText& text) {
  UpdateWriter(call, AdamText(call)).Write(text);
  return nullptr;
}

const char* WriteSgd(const OpDef&, const OpCall& call, KernelText& text) {
  UpdateWriter(call, SgdText(call)).Write(text);
  return nullptr;
}

// Elements are in the order of the parameter's, which draws and codes count in row-major.
bool CountsElements(const OpCall& call, const MomentSlots& moment, const char* name) {
  if (!call.has_input(static_cast<size_t>(moment.input))) return false;
  const MomentText text(call, moment, name);
  return text.coded() || text.rounded();
}

const char* WriteAdamChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  if (CountsElements(call, kAdamM, "m") || CountsElements(call, kAdamV, "v"))
    return refusal::kLayout;
  return WriteAdam(op, call, text);
}

const char* WriteSgdChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  return CountsElements(call, kSgdBuffer, "buffer") ? refusal::kLayout : WriteSgd(op, call, text);
}

}  // namespace

TextKernelDef AdamTextKernel() {
  return {.name = "cuda.adam",
          .ops = {"adam_update"},
          .write = WriteAdam,
          .write_channels_last = WriteAdamChannelsLast};
}

TextKernelDef SgdTextKernel() {
  return {.name = "cuda.sgd",
          .ops = {"sgd_update"},
          .write = WriteSgd,
          .write_channels_last = WriteSgdChannelsLast};
}

}  // namespace ridge::cuda
