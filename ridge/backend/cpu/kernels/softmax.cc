// softmax and log_softmax by oneDNN, along any axis of a row-major tensor.
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

using Softmax = dnnl::softmax_forward;

void BindBoth(const dnnl::memory::desc& x, PrimitivePlan& plan) {
  plan.BindInput(DNNL_ARG_SRC, 0, x, x);
  plan.BindOutput(DNNL_ARG_DST, 0, x, x);
}

// By the rules of another CPU's library.
std::optional<PrimitivePlan> PlanElsewhere(const CandidateQuery& q, const dnnl::memory::desc& x,
                                           LayoutSource source) {
  const DType dtype = q.call.inputs[0].dtype;
  if (!HasRules(dtype, q.cpu.instructions)) return std::nullopt;
  PrimitivePlan plan(q, source, nullptr);
  BindBoth(x, plan);
  plan.SetAnswer(JitName("jit", dtype, q.cpu.instructions), 0);
  return plan;
}

// [outer, extent, inner]: three dimensions whatever the rank.
std::optional<PrimitivePlan> PlanSoftmax(const CandidateQuery& q, LayoutSource source,
                                         const KernelChoice* choice) {
  const TeamSize team(q.threads());
  const TensorType& type = q.call.inputs[0];
  const AxisView view = ViewAxis(type.dims, CallAxis(q.call));
  const auto x = RowMajorDesc(type.dtype, {view.outer, view.extent, view.inner});
  const auto algorithm =
      q.op.name == "log_softmax" ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
  const auto make = [&] {
    return Softmax::primitive_desc(q.cpu.engine, dnnl::prop_kind::forward_inference, algorithm, x,
                                   x,
                                   /*axis=*/1, UserScratchpad());
  };
  if (!q.cpu.is_here) return PlanElsewhere(q, x, source);
  const auto desc = SelectDesc(make, choice == nullptr ? "" : ImplementationOf(*choice));
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, source, choice);
  BindBoth(x, plan);
  plan.SetPrimitive(*desc);
  return plan;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const auto plan = PlanSoftmax(q, LayoutSource::kRowMajor, nullptr);
  if (!plan) return refusal::kNoPrimitive;
  plan->Describe(candidates.Add());
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return CompilePlan(PlanSoftmax(q, LayoutSource::kChoice, &choice), q, choice);
}

}  // namespace

KernelDef SoftmaxKernelDef() {
  return {.name = "onednn.softmax",
          .ops = {"softmax", "log_softmax"},
          .dtypes = {DType::kF32, DType::kBF16},
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
