#include "ridge/backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <map>

#include "ridge/backend/cpu/gemm_buffers.h"
#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/cpu/host_rules.h"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/reorder.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/instructions.h"
#include "ridge/lower/roofline.h"

namespace ridge {
namespace {

using cpu::CandidateQuery;
using cpu::CpuContext;

// Nothing to write: for outputs without elements.
class NoKernel : public HostKernel<NoKernel> {
 public:
  Status Run(const KernelBuffers&) { return Status(); }
};
constexpr const char* kNoKernel = "nothing";

bool WritesNothing(const OpCall& call) {
  for (const TensorType& type : call.outputs) {
    if (type.elements() != 0) return false;
  }
  return true;
}

// oneDNN's cache takes some descriptors for equal although their workspaces differ, and returns the
// one that it met first, which may need more than was planned.  While this lives, descriptors and
// primitives are made without the cache.
class WithoutPrimitiveCache {
 public:
  WithoutPrimitiveCache() { dnnl::set_primitive_cache_capacity(0); }
  ~WithoutPrimitiveCache() { dnnl::set_primitive_cache_capacity(capacity_); }

 private:
  const int capacity_ = dnnl::get_primitive_cache_capacity();
};

class CpuBackend : public Backend {
 public:
  CpuBackend(int threads, const InstructionSet& instructions, ConvKernels conv,
             OfferedKernels offered)
      : cpu_{threads,        dnnl::engine(dnnl::engine::kind::cpu, 0),
             dnnl::stream(), conv == ConvKernels::kDirect,
             instructions,   instructions == cpu::LibraryInstructions()},
        serial_(cpu_),
        offered_(offered),
        nominal_(NominalProfile(threads, instructions.vectors)),
        device_(threads) {
    LimitInstructions();
    cpu_.stream = dnnl::stream(cpu_.engine);
    serial_ = cpu_;
    serial_.threads = 1;
  }

  const RewriteRules& rules() const override { return HostRules(); }
  const CostModel& nominal() const override { return nominal_; }
  const std::string& name() const override { return name_; }
  int threads() const override { return cpu_.threads; }
  Device& device() override { return device_; }
  bool Multiplies(DType operands) const override {
    if (operands == DType::kBF16) return cpu_.instructions.bf16;
    return operands == DType::kF32 || operands == DType::kF64;
  }

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    return CachedCandidates({cpu_, op, call, available}, candidates_);
  }

  KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                    std::span<const LayoutId> available) override {
    KernelCandidates candidates =
        CachedCandidates({serial_, op, call, available}, serial_candidates_);
    for (KernelChoice& choice : candidates.choices) choice.one_thread = true;
    return candidates;
  }

  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return cpu::LayoutBytesOf(type, layout);
  }
  std::string LayoutName(LayoutId layout) const override { return cpu::LayoutNameOf(layout); }

  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return MakeReorderChoice(type, from, to, ReorderThreads(type));
  }

  std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                            LayoutId to) override {
    KernelChoice choice = MakeReorderChoice(type, from, to, 1);
    choice.one_thread = true;
    return choice;
  }

  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    if (!cpu_.is_here)
      return Status(ErrorCode::kUnsupported, call.where + ": is planned for another CPU");
    if (choice.heap_bytes > 0) cpu::PrepareGemm();
    if (choice.kernel == "reference") return CreateReferenceKernel(op, call);
    if (choice.kernel == kNoKernel) return std::unique_ptr<Kernel>(std::make_unique<NoKernel>());
    const cpu::KernelDef* def = cpu::FindKernel(op, choice.kernel);
    if (def == nullptr) {
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{}: this program has no kernel '{}' on the CPU. hint: the plan "
                                "was made by another version; plan again",
                                call.where, choice.kernel));
    }
    const CandidateQuery q{choice.one_thread ? serial_ : cpu_, op, call};
    return cpu::CatchDnnl(call, [&] {
      Result<std::unique_ptr<Kernel>> kernel = def->make(q, choice);
      if (kernel.ok() || kernel.status().code() != ErrorCode::kInternal) return kernel;
      const WithoutPrimitiveCache made_anew;
      return def->make(q, choice);
    });
  }

  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    OpCall call;
    call.where = "reorder of " + TypeToString(type);
    const int threads = choice.one_thread ? 1 : ReorderThreads(type);
    return cpu::CatchDnnl(call, [&]() -> Result<std::unique_ptr<Kernel>> {
      if (choice.kernel == "cpu.reorder") {
        return cpu::MakeStridedReorder(
            *StridedReorder(type, choice.input_layouts.at(0), choice.output_layouts.at(0)),
            threads);
      }
      return cpu::MakeReorderKernel(cpu_, threads, cpu::DescOf(type, choice.input_layouts.at(0)),
                                    cpu::DescOf(type, choice.output_layouts.at(0)));
    });
  }

 private:
  static std::optional<cpu::StridedCopy> StridedReorder(const TensorType& type, LayoutId from,
                                                        LayoutId to) {
    return cpu::PlanStridedReorder(cpu::DescOf(type, from), cpu::DescOf(type, to),
                                   BytesPerElement(type.dtype));
  }

  KernelChoice MakeReorderChoice(const TensorType& type, LayoutId from, LayoutId to,
                                 int threads) const {
    KernelChoice choice;
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    choice.efficiency = 0.2;  // oneDNN's blocking copies reach 15 to 33 GB/s in the last cache
    if (StridedReorder(type, from, to)) {
      choice.kernel = "cpu.reorder";
    } else {
      choice.kernel = "onednn.reorder";
      choice.workspace_bytes =
          cpu::ReorderWorkspaceBytes(cpu_, threads, cpu::DescOf(type, from), cpu::DescOf(type, to));
    }
    choice.key = fmt::format("{} {} {}->{} threads={}", choice.kernel, TypeToString(type),
                             LayoutName(from), LayoutName(to), threads);
    return choice;
  }

  // Caches the candidates: the planner queries equal nodes repeatedly.
  KernelCandidates CachedCandidates(const CandidateQuery& q,
                                    std::map<std::string, KernelCandidates>& kept) const {
    std::string key = CallKey(q.op, q.call);
    for (const LayoutId layout : q.available) key += "," + std::to_string(layout);
    const auto [found, added] = kept.try_emplace(std::move(key));
    if (added) found->second = FindCandidates(q);
    return found->second;
  }

  int ReorderThreads(const TensorType& type) const {
    return type.bytes() < 16 * 1024 ? 1 : cpu_.threads;
  }

  KernelCandidates FindCandidates(const CandidateQuery& q) const {
    KernelCandidates candidates;
    if (WritesNothing(q.call)) {
      candidates.choices.push_back(cpu::MakeChoice(q, kNoKernel));
      cpu::SetKey(q, candidates.choices.back());
      return candidates;
    }
    cpu::OfferCandidates(q, /*measured=*/offered_ == OfferedKernels::kAll, candidates);
    candidates.choices.push_back(ReferenceChoice(q.op, q.call));
    return candidates;
  }

  const std::string name_ = "cpu";
  CpuContext cpu_;
  CpuContext serial_;  // the same for kernels on one thread
  const OfferedKernels offered_;
  const Roofline nominal_;
  cpu::HostDevice device_;
  std::map<std::string, KernelCandidates> candidates_, serial_candidates_;
};

}  // namespace

std::string CpuLibrary() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version.major, version.minor, version.patch);
}

Result<std::unique_ptr<Backend>> MakeCpuBackend(int threads, ConvKernels conv,
                                                OfferedKernels offered) {
  return MakePlannedCpu(threads, cpu::LibraryInstructions(), conv, offered);
}

bool CanPlanFor(const InstructionSet& instructions) {
  return instructions == cpu::LibraryInstructions() || cpu::HasRules(DType::kF32, instructions);
}

Result<std::unique_ptr<Backend>> MakePlannedCpu(int threads, const InstructionSet& instructions,
                                                ConvKernels conv, OfferedKernels offered) {
  if (threads < 1) {
    return InvalidArgument(fmt::format("threads is {}; it must be at least 1", threads));
  }
  RIDGE_RETURN_IF_ERROR(cpu::MakeTeam(threads));
  try {
    return std::unique_ptr<Backend>(
        std::make_unique<CpuBackend>(threads, instructions, conv, offered));
  } catch (const dnnl::error& error) {
    return Status(ErrorCode::kDevice, fmt::format("oneDNN could not start: {}", error.what()));
  }
}

}  // namespace ridge
