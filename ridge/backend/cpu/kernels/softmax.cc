// softmax and log_softmax by oneDNN, along any axis of a row-major tensor.
#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cpu {
namespace {

using Softmax = dnnl::softmax_forward;

// [outer, extent, inner]: three dimensions whatever the rank.
std::optional<PrimitivePlan> PlanSoftmax(const CpuContext& cpu, const OpDef& op, const OpCall& call,
                                         LayoutSource source, const KernelChoice* choice) {
  const int threads = ThreadsFor(cpu, op, call);
  const TeamSize team(threads);
  const TensorType& type = call.inputs[0];
  const int64_t axis = call.integer("axis");
  const AxisView view = ViewAxis(type.dims, static_cast<int>(axis < 0 ? axis + type.rank() : axis));
  const auto x = RowMajorDesc(type.dtype, {view.outer, view.extent, view.inner});
  const auto algorithm =
      op.name == "log_softmax" ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
  const auto make = [&] {
    return Softmax::primitive_desc(cpu.engine, dnnl::prop_kind::forward_inference, algorithm, x, x,
                                   /*axis=*/1, UserScratchpad());
  };
  const auto desc = SelectDesc(make, choice == nullptr ? "" : ImplementationOf(*choice));
  if (!desc) return std::nullopt;
  PrimitivePlan plan(cpu, call, threads, source, choice);
  plan.BindInput(DNNL_ARG_SRC, 0, x, x);
  plan.BindOutput(DNNL_ARG_DST, 0, x, x);
  plan.SetPrimitive(*desc);
  return plan;
}

}  // namespace

const char* OfferSoftmax(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  const DType dtype = q.call.inputs[0].dtype;
  if (dtype != DType::kF32 && dtype != DType::kBF16) return refusal::kDType;
  const auto plan = PlanSoftmax(q.cpu, q.op, q.call, LayoutSource::kRowMajor, nullptr);
  if (!plan) return refusal::kNoPrimitive;
  choices.push_back(plan->Choice(q, "onednn.softmax", 1));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> CreateSoftmax(const CpuContext& cpu, const OpDef& op,
                                              const OpCall& call, const KernelChoice& choice) {
  const auto plan = PlanSoftmax(cpu, op, call, LayoutSource::kChoice, &choice);
  if (plan) return plan->Compile();
  return Status(ErrorCode::kUnsupported,
                call.where + ": this machine has no kernel " + choice.kernel);
}

}  // namespace ridge::cpu
