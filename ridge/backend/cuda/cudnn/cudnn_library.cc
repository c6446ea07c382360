#include "ridge/backend/cuda/cudnn/cudnn_library.h"

#include <fmt/format.h>

#include <map>

#include "ridge/backend/cuda/cuda_stream.h"
#include "ridge/backend/cuda/cudnn/cudnn_call.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/backend/cuda/nominal_gpu.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge::cuda {
namespace {

constexpr size_t kMostPlans = 4;  // of a call, where they are timed
constexpr std::string_view kPrefix = "cudnn.", kChannelsLastMark = "/channels_last:";

// "cudnn.conv/channels_last:eng62_k2=5"
std::string KernelName(const OpDef& op, LayoutId layout, const CudnnPlan& plan) {
  return fmt::format("{}{}{}{}", kPrefix, op.name,
                     layout == kChannelsLast ? kChannelsLastMark : "/", plan.name());
}
LayoutId LayoutOfKernel(const std::string& kernel) {
  return kernel.find(kChannelsLastMark) == std::string::npos ? kRowMajor : kChannelsLast;
}

class CudnnKernel : public Kernel {
 public:
  CudnnKernel(CudaContext& context, std::shared_ptr<CudnnPlan> plan, const CudnnCall& asked)
      : context_(context), plan_(std::move(plan)), operands_(asked.operands) {}

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    if (!context_.Ready()) return context_.error();
    std::array<void*, RIDGE_CUDNN_SLOTS> tensors{};
    for (size_t slot = 0; slot < tensors.size(); ++slot)
      tensors[slot] = AddressOf(operands_[slot], buffers);
    const Status enqueued =
        plan_->Enqueue(static_cast<CudaStream&>(stream).handle(), tensors, buffers.workspace);
    context_.Keep(context_.OfLibrary(enqueued));
    return context_.error();
  }

 private:
  static void* AddressOf(const CudnnOperand& operand, const KernelBuffers& buffers) {
    if (operand.of == CudnnOperand::Of::kNothing) return nullptr;
    const void* const begin = operand.of == CudnnOperand::Of::kInput
                                  ? buffers.inputs[operand.index]
                                  : buffers.outputs[operand.index];
    return const_cast<char*>(static_cast<const char*>(begin)) + operand.offset_bytes;
  }

  CudaContext& context_;
  const std::shared_ptr<CudnnPlan> plan_;
  const std::array<CudnnOperand, RIDGE_CUDNN_SLOTS> operands_;
};

class CudnnLibrary : public KernelLibrary {
 public:
  CudnnLibrary(CudaContext& context, std::shared_ptr<CudnnSession> session,
               const LibraryOptions& options)
      : context_(context), session_(std::move(session)), options_(options) {}

  const std::string& version() const override { return session_->version(); }
  const std::string& path() const override { return session_->path(); }
  bool Knows(const OpDef& op) const override { return IsAttention(op) || IsConv(op); }
  // cuDNN refuses convolutions of 16-bit operands with f32 results.
  bool GivesF32Sums(const OpDef& op) const override { return !IsConv(op); }

  bool GivesBiasGradient(DType operands) const override { return !CudnnTypeOf(operands); }

  void AddCandidates(const OpDef& op, const OpCall& call, std::span<const LayoutId> /*available*/,
                     KernelCandidates& found) override {
    if (IsConv(op)) Add(op, call, kChannelsLast, found);
    Add(op, call, kRowMajor, found);
  }

  bool Makes(const KernelChoice& choice) const override {
    return choice.kernel.starts_with(kPrefix);
  }

  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    const LayoutId layout = LayoutOfKernel(choice.kernel);
    const Answer& answer = Ask(op, call, layout);
    for (const std::shared_ptr<CudnnPlan>& plan : answer.plans) {
      if (KernelName(op, layout, *plan) == choice.kernel &&
          plan->workspace_bytes() <= choice.workspace_bytes)
        return std::unique_ptr<Kernel>(std::make_unique<CudnnKernel>(context_, plan, answer.asked));
    }
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: {} has no {} of {} bytes of workspace for it", call.where,
                              VersionAndPath(*this), choice.kernel, choice.workspace_bytes));
  }

 private:
  struct Answer {
    CudnnCall asked;
    std::vector<std::shared_ptr<CudnnPlan>> plans;  // cuDNN's best first; or
    std::string refusal;
  };

  // Equal calls share a plan as long as the library is open.
  const Answer& Ask(const OpDef& op, const OpCall& call, LayoutId layout) {
    const auto [at, is_new] = answers_.try_emplace({CallKey(op, call), layout});
    Answer& answer = at->second;
    if (!is_new) return answer;
    const char* const reason = IsConv(op) ? DescribeConv(op, call, layout, answer.asked)
                                          : DescribeAttention(op, call, answer.asked);
    if (reason != nullptr) {
      answer.refusal = reason;
      return answer;
    }
    answer.asked.question.same_bits = 1;
    answer.asked.question.tf32 = options_.tf32 ? 1 : 0;
    auto plans = PlansFor(answer.asked.question);
    if (plans.ok()) {
      answer.plans = *std::move(plans);
    } else {
      answer.refusal = "cuDNN: " + plans.status().message();
    }
    return answer;
  }

  Result<std::vector<std::shared_ptr<CudnnPlan>>> PlansFor(const RidgeCudnnQuestion& question) {
    RIDGE_RETURN_IF_ERROR(context_.Enter());
    return session_->MakeSeveral(question, options_.all_kernels ? kMostPlans : 1);
  }

  void Add(const OpDef& op, const OpCall& call, LayoutId layout, KernelCandidates& found) {
    const Answer& answer = Ask(op, call, layout);
    const std::string name = std::string(kPrefix) + op.name;
    if (answer.plans.empty()) found.refusals.push_back({name, answer.refusal});
    // Of the first one for all: which is taken without measured times does not depend on how many
    // are offered.
    const double extra_s =
        !answer.plans.empty() && IsConv(op) ? CopySeconds(answer.plans[0]->workspace_bytes()) : 0;
    for (const std::shared_ptr<CudnnPlan>& plan : answer.plans) {
      KernelChoice choice = RowMajorChoice(op, call, KernelName(op, layout, *plan));
      choice.in_place.clear();
      if (layout == kChannelsLast) TakeChannelsLast(answer.asked, choice);
      choice.workspace_bytes = plan->workspace_bytes();
      choice.extra_s = extra_s;
      choice.key = choice.kernel + " " + CallKey(op, call);
      found.choices.push_back(std::move(choice));
    }
  }

  static void TakeChannelsLast(const CudnnCall& conv, KernelChoice& choice) {
    for (const size_t slot : {RIDGE_CUDNN_X, RIDGE_CUDNN_W, RIDGE_CUDNN_Y}) {
      const CudnnOperand& operand = conv.operands[slot];
      const bool is_input = operand.of == CudnnOperand::Of::kInput;
      (is_input ? choice.input_layouts : choice.output_layouts)[operand.index] = kChannelsLast;
    }
  }

  // The workspace of a convolution is copies of operands in the layout that the engine takes.
  static double CopySeconds(int64_t bytes) {
    static const double bytes_per_s = NominalGpuProfile().memory.back().bytes_per_s;
    return 2 * static_cast<double>(bytes) / bytes_per_s;
  }

  CudaContext& context_;
  const std::shared_ptr<CudnnSession> session_;
  const LibraryOptions options_;
  std::map<std::pair<std::string, LayoutId>, Answer> answers_;
};

}  // namespace

std::unique_ptr<KernelLibrary> MakeCudnnLibrary(CudaContext& context,
                                                std::shared_ptr<CudnnSession> session,
                                                const LibraryOptions& options) {
  return std::make_unique<CudnnLibrary>(context, std::move(session), options);
}

Result<std::unique_ptr<KernelLibrary>> OpenCudnn(CudaContext& context, const GpuFacts& gpu,
                                                 const LibrarySearch& search,
                                                 const LibraryOptions& options) {
  RIDGE_RETURN_IF_ERROR(context.Enter());
  RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<CudnnSession> session,
                         CudnnSession::Open(search, 10 * gpu.major + gpu.minor));
  return MakeCudnnLibrary(context, std::move(session), options);
}

}  // namespace ridge::cuda
