// The table of all kernels, and what all candidates have in common.
#include "ridge/backend/cpu/kernel_def.h"

#include <algorithm>

#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/reference/reference_backend.h"

namespace ridge::cpu {

#define RIDGE_KERNEL(Name) KernelDef Name##KernelDef();
#include "ridge/backend/cpu/kernels/kernels.def"
#undef RIDGE_KERNEL

namespace {

constexpr int64_t kTinyFlops = 100'000;
constexpr int64_t kTinyBytes = 32 * 1024;

bool AnyEmpty(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && call.inputs[i].elements() == 0) return true;
  }
  for (const TensorType& type : call.outputs) {
    if (type.elements() == 0) return true;
  }
  return false;
}

bool TakesTypes(const KernelDef& def, const OpCall& call) {
  if (def.dtypes.empty()) return true;
  const TensorType& type = def.typed_by == kLastInput
                               ? call.inputs.back()
                               : call.inputs[static_cast<size_t>(def.typed_by)];
  if (std::find(def.dtypes.begin(), def.dtypes.end(), type.dtype) == def.dtypes.end()) return false;
  return !def.one_dtype || AllOf(call, type.dtype);
}

const char* Refusal(const KernelDef& def, const CandidateQuery& q) {
  if (!def.direct_sums && q.cpu.direct_conv) return refusal::kDirectOnly;
  if (!def.takes_empty && AnyEmpty(q.call)) return refusal::kEmpty;
  if (!TakesTypes(def, q.call)) return refusal::kDType;
  return def.refuse == nullptr ? nullptr : def.refuse(q);
}

const char* Offer(const KernelDef& def, const CandidateQuery& q,
                  std::vector<KernelChoice>& choices) {
  if (const char* reason = Refusal(def, q); reason != nullptr) return reason;
  Candidates candidates(def, q);
  const char* reason = nullptr;
  if (def.offer == nullptr) {
    candidates.Add();
  } else {
    reason = def.offer(q, candidates);
  }
  for (KernelChoice& choice : candidates.Take()) choices.push_back(std::move(choice));
  return reason;
}

// But for those that are there already.
void OfferMeasured(const KernelDef& def, const CandidateQuery& q,
                   std::vector<KernelChoice>& choices) {
  if (def.offer_measured == nullptr || Refusal(def, q) != nullptr) return;
  Candidates candidates(def, q);
  def.offer_measured(q, candidates);
  for (KernelChoice& choice : candidates.Take()) {
    const auto same = [&](const KernelChoice& other) { return other.key == choice.key; };
    if (std::none_of(choices.begin(), choices.end(), same)) choices.push_back(std::move(choice));
  }
}

}  // namespace

int CandidateQuery::threads() const {
  const Cost cost = CallCost(op, call);
  const bool tiny = cost.flops < kTinyFlops && cost.bytes_read + cost.bytes_written < kTinyBytes;
  return tiny ? 1 : cpu.threads;
}

bool KernelDef::Runs(const OpDef& op) const {
  return std::any_of(ops.begin(), ops.end(), [&](const std::string& own) {
    return own == op.name || (own == "*" && (op.elementwise != nullptr || op.name == "fused"));
  });
}

std::string KernelDef::NameFor(const OpDef& op) const {
  constexpr std::string_view kOp = "{op}";
  const size_t at = name.find(kOp);
  return at == std::string::npos ? name : std::string(name).replace(at, kOp.size(), op.name);
}

KernelChoice& Candidates::Add(double efficiency) {
  KernelChoice& choice = choices_.emplace_back(MakeChoice(q_, def_.NameFor(q_.op), efficiency));
  if (!def_.in_place) choice.in_place.clear();
  if (def_.workspace_bytes != nullptr) choice.workspace_bytes = def_.workspace_bytes(q_);
  return choice;
}

std::vector<KernelChoice> Candidates::Take() {
  for (KernelChoice& choice : choices_) SetKey(q_, choice);
  return std::move(choices_);
}

const std::vector<KernelDef>& AllKernels() {
#define RIDGE_KERNEL(Name) Name##KernelDef(),
  static const std::vector<KernelDef> kernels = {
#include "ridge/backend/cpu/kernels/kernels.def"
  };
#undef RIDGE_KERNEL
  return kernels;
}

const KernelDef* FindKernel(const OpDef& op, const std::string& kernel) {
  const std::string name = kernel.substr(0, kernel.find('/'));
  for (const KernelDef& def : AllKernels()) {
    if (def.Runs(op) && def.NameFor(op) == name) return &def;
  }
  return nullptr;
}

Status UnsupportedChoice(const CandidateQuery& q, const KernelChoice& choice) {
  return Status(ErrorCode::kUnsupported,
                q.call.where + ": this machine has no kernel " + choice.kernel);
}

void OfferCandidates(const CandidateQuery& q, bool measured, KernelCandidates& candidates) {
  for (const KernelDef& def : AllKernels()) {
    if (!def.Runs(q.op)) continue;
    const char* reason = Offer(def, q, candidates.choices);
    if (reason != nullptr) candidates.refusals.push_back({def.NameFor(q.op), reason});
  }
  for (const KernelDef& def : AllKernels()) {
    if (measured && def.Runs(q.op)) OfferMeasured(def, q, candidates.choices);
  }
}

KernelChoice MakeChoice(const CandidateQuery& q, const std::string& kernel, double efficiency) {
  KernelChoice choice = RowMajorChoice(q.op, q.call, kernel);
  choice.efficiency = efficiency;
  return choice;
}

void SetKey(const CandidateQuery& q, KernelChoice& choice) {
  choice.key = choice.kernel + " " + CallKey(q.op, q.call) + " layouts=";
  const auto append = [&](const std::vector<LayoutId>& layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      choice.key += (i == 0 ? "" : ",") + LayoutNameOf(layouts[i]);
  };
  append(choice.input_layouts);
  choice.key += "->";
  append(choice.output_layouts);
  choice.key += " threads=" + std::to_string(q.threads());
}

bool AllOf(const OpCall& call, DType dtype) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && call.inputs[i].dtype != dtype) return false;
  }
  for (const TensorType& type : call.outputs) {
    if (type.dtype != dtype) return false;
  }
  return true;
}

}  // namespace ridge::cpu
