// batch_norm, its gradient and its inference form by oneDNN, in the layout that the input has.
//
// Fast in nChw16c (73 ms over ResNet-50, against 129 for nhwc); row-major is the slow choice.
// Padded channels are oneDNN's care.
#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;
using Flags = dnnl::normalization_flags;
using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

constexpr auto kAffine = static_cast<Flags>(dnnl_use_scale | dnnl_use_shift);
constexpr auto kGiven = static_cast<Flags>(dnnl_use_scale | dnnl_use_shift | dnnl_use_global_stats);

// What is planned: the layout of x, y and their gradients, and where layouts come from.
struct Wish {
  LayoutId layout;
  LayoutSource source;
  const KernelChoice* choice;

  std::string implementation() const { return choice == nullptr ? "" : ImplementationOf(*choice); }
};

float Epsilon(const OpCall& call) { return static_cast<float>(call.number("epsilon")); }

// A statistic or parameter is bound in its one layout.
void BindVector(PrimitivePlan& plan, const OpCall& call, int arg, int input) {
  const memory::desc desc = RowMajorDesc(DType::kF32, call.inputs[static_cast<size_t>(input)].dims);
  plan.BindInput(arg, input, desc, desc);
}

using PlanFn = std::optional<PrimitivePlan> (*)(const CandidateQuery&, const Wish&);

std::optional<PrimitivePlan> PlanForward(const CandidateQuery& q, const Wish& wish) {
  const TeamSize team(q.threads());
  const OpCall& call = q.call;
  const TensorType& type = call.inputs[0];
  const memory::desc plain = DescOf(type, kRowMajor), x = DescOf(type, wish.layout);
  const memory::desc stats = RowMajorDesc(DType::kF32, {type.dims[1]});
  const auto make = [&] {
    return Forward::primitive_desc(q.cpu.engine, dnnl::prop_kind::forward_training, x, x,
                                   Epsilon(call), kAffine, UserScratchpad());
  };
  const auto desc = SelectDesc(make, wish.implementation());
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, wish.source, wish.choice);
  plan.BindInput(DNNL_ARG_SRC, 0, plain, x);
  BindVector(plan, call, DNNL_ARG_SCALE, 1);
  BindVector(plan, call, DNNL_ARG_SHIFT, 2);
  plan.BindOutput(DNNL_ARG_DST, 0, plain, x);
  plan.BindOutput(DNNL_ARG_MEAN, 1, stats, stats);
  plan.BindOutput(DNNL_ARG_VARIANCE, 2, stats, stats);
  plan.SetPrimitive(*desc);
  return plan;
}

std::optional<PrimitivePlan> PlanInference(const CandidateQuery& q, const Wish& wish) {
  const TeamSize team(q.threads());
  const OpCall& call = q.call;
  const TensorType& type = call.inputs[0];
  const memory::desc plain = DescOf(type, kRowMajor), x = DescOf(type, wish.layout);
  const auto make = [&] {
    return Forward::primitive_desc(q.cpu.engine, dnnl::prop_kind::forward_inference, x, x,
                                   Epsilon(call), kGiven, UserScratchpad());
  };
  const auto desc = SelectDesc(make, wish.implementation());
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, wish.source, wish.choice);
  plan.BindInput(DNNL_ARG_SRC, 0, plain, x);
  BindVector(plan, call, DNNL_ARG_SCALE, 1);
  BindVector(plan, call, DNNL_ARG_SHIFT, 2);
  BindVector(plan, call, DNNL_ARG_MEAN, 3);
  BindVector(plan, call, DNNL_ARG_VARIANCE, 4);
  plan.BindOutput(DNNL_ARG_DST, 0, plain, x);
  plan.SetPrimitive(*desc);
  return plan;
}

std::optional<PrimitivePlan> PlanBackward(const CandidateQuery& q, const Wish& wish) {
  const TeamSize team(q.threads());
  const OpCall& call = q.call;
  const TensorType& type = call.inputs[0];
  const memory::desc plain = DescOf(type, kRowMajor), x = DescOf(type, wish.layout);
  const memory::desc stats = RowMajorDesc(DType::kF32, {type.dims[1]});
  Forward::primitive_desc hint;  // read again when oneDNN looks for the next implementation
  const auto make = [&] {
    hint = Forward::primitive_desc(q.cpu.engine, dnnl::prop_kind::forward_training, x, x,
                                   Epsilon(call), kAffine, UserScratchpad());
    return Backward::primitive_desc(q.cpu.engine, dnnl::prop_kind::backward, x, x, x, Epsilon(call),
                                    kAffine, hint, UserScratchpad());
  };
  const auto desc = SelectDesc(make, wish.implementation());
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, wish.source, wish.choice);
  plan.BindInput(DNNL_ARG_SRC, 0, plain, x);
  BindVector(plan, call, DNNL_ARG_SCALE, 1);
  BindVector(plan, call, DNNL_ARG_MEAN, 2);
  BindVector(plan, call, DNNL_ARG_VARIANCE, 3);
  plan.BindInput(DNNL_ARG_DIFF_DST, 4, plain, x);
  plan.BindOutput(DNNL_ARG_DIFF_SRC, 0, plain, x);
  plan.BindOutput(DNNL_ARG_DIFF_SCALE, 1, stats, stats);
  plan.BindOutput(DNNL_ARG_DIFF_SHIFT, 2, stats, stats);
  plan.SetPrimitive(*desc);
  return plan;
}

// By the rules of another CPU's library; `inputs` of the shape of a channel follow x.
std::optional<PrimitivePlan> PlanElsewhere(const CandidateQuery& q, const Wish& wish) {
  const TensorType& type = q.call.inputs[0];
  if (!HasRules(type.dtype, q.cpu.instructions)) return std::nullopt;
  PrimitivePlan plan(q, wish.source, wish.choice);
  const auto bind = [&](const std::vector<TensorType>& types, auto&& add) {
    for (size_t i = 0; i < types.size(); ++i) {
      const bool whole = types[i].rank() == type.rank();
      const memory::desc plain = DescOf(types[i], kRowMajor);
      add(static_cast<int>(i), plain, whole ? DescOf(types[i], wish.layout) : plain);
    }
  };
  bind(q.call.inputs, [&](int i, const memory::desc& plain, const memory::desc& wanted) {
    plan.BindInput(i, i, plain, wanted);
  });
  bind(q.call.outputs, [&](int i, const memory::desc& plain, const memory::desc& wanted) {
    plan.BindOutput(i, i, plain, wanted);
  });
  const std::string name = wish.layout == kRowMajor
                               ? "ncsp_bnorm:any"
                               : JitName("bnorm_jit", type.dtype, q.cpu.instructions);
  constexpr int64_t kSums = 4 * 4;  // bytes a channel and thread
  plan.SetAnswer(name, q.threads() * type.dims[1] * kSums);
  return plan;
}

PlanFn PlanFor(const CandidateQuery& q) {
  if (!q.cpu.is_here) return PlanElsewhere;
  const OpDef& op = q.op;
  if (op.name == "batch_norm_grad") return PlanBackward;
  return op.name == "batch_norm_inference" ? PlanInference : PlanForward;
}

// Whole-tensor inputs: x, and dy of the gradient.
std::vector<LayoutId> CandidateLayouts(const CandidateQuery& q) {
  std::vector<LayoutId> layouts = {q.available_layout(0)};
  if (q.op.name == "batch_norm_grad") layouts.push_back(q.available_layout(4));
  layouts.push_back(kRowMajor);
  std::vector<LayoutId> distinct;
  for (const LayoutId layout : layouts) {
    if (std::find(distinct.begin(), distinct.end(), layout) == distinct.end())
      distinct.push_back(layout);
  }
  return distinct;
}

// Steps behind the norm, or relu's mask before its gradient.
bool HasSteps(const CandidateQuery& q) {
  if (q.op.name == "batch_norm_grad") return q.call.integer("relu") != 0;
  return !q.call.text("epilogue").empty();
}

const char* Refuse(const CandidateQuery& q) {
  if (HasSteps(q)) return refusal::kEpilogue;
  return q.call.inputs[0].rank() > 5 ? refusal::kRank : nullptr;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const char* reason = refusal::kNoPrimitive;
  for (const LayoutId layout : CandidateLayouts(q)) {
    const auto plan = PlanFor(q)(q, {layout, LayoutSource::kPrimitive, nullptr});
    if (!plan) continue;
    plan->Describe(candidates.Add(layout == kRowMajor ? 0.5 : 1));
    reason = nullptr;
  }
  return reason;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const LayoutId layout = choice.input_layouts.at(0);
  return CompilePlan(PlanFor(q)(q, {layout, LayoutSource::kChoice, &choice}), q, choice);
}

}  // namespace

KernelDef OneDnnBatchNormKernelDef() {
  return {.name = "onednn.batch_norm",
          .ops = {"batch_norm", "batch_norm_grad", "batch_norm_inference"},
          .dtypes = {DType::kF32, DType::kBF16},
          .refuse = Refuse,
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
