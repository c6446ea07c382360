#include "tests/cuda_text/text_backend.h"

#include <cstring>
#include <map>
#include <new>
#include <string_view>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/backend/forwarding_backend.h"
#include "ridge/backend/host_kernel.h"

namespace ridge::cuda_text {
namespace {

constexpr std::align_val_t kAlignment{256};  // of CUDA's memory

// AddressSanitizer has guards of its own.
#if defined(RIDGE_ADDRESS_SANITIZER)
constexpr size_t kGuardBytes = 0;
#else
constexpr size_t kGuardBytes = 4096;
#endif
constexpr char kGuard = '\xA5';

// Memory of exactly this many bytes; of none for 0.  Guards lie in front of it and
// behind it.
class Exact {
 public:
  explicit Exact(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)),
        storage_(static_cast<std::byte*>(::operator new(bytes_ + 2 * kGuardBytes, kAlignment))) {
    std::memset(storage_, kGuard, kGuardBytes);
    std::memset(at() + bytes_, kGuard, kGuardBytes);
  }
  ~Exact() { ::operator delete(storage_, kAlignment); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  std::byte* at() const { return storage_ + kGuardBytes; }
  bool intact() const { return IsGuard(storage_) && IsGuard(at() + bytes_); }

 private:
  static bool IsGuard(const std::byte* begin) {
    static const std::string guard(kGuardBytes, kGuard);
    return std::string_view(reinterpret_cast<const char*>(begin), kGuardBytes) == guard;
  }

  const size_t bytes_;
  std::byte* const storage_;
};

class TextKernel : public HostKernel<TextKernel> {
 public:
  TextKernel(cuda::KernelText text, const OpCall& call, const TextProgram& program)
      : text_(std::move(text)), call_(call), program_(program) {}

  Status Run(const KernelBuffers& buffers) {
    copies_.clear();
    for (size_t i = 0; i < buffers.inputs.size(); ++i) {
      if (call_.has_input(i)) CopyIn(buffers.inputs[i], call_.inputs[i].bytes());
    }
    for (size_t o = 0; o < buffers.outputs.size(); ++o)
      CopyIn(buffers.outputs[o], call_.outputs[o].bytes());
    CopyIn(buffers.workspace, text_.workspace_bytes);
    for (const cuda::Launch& launch : text_.launches) RIDGE_RETURN_IF_ERROR(Run(launch, buffers));
    for (size_t o = 0; o < buffers.outputs.size(); ++o)
      CopyOut(buffers.outputs[o], call_.outputs[o].bytes());
    CopyOut(buffers.workspace, text_.workspace_bytes);
    backward_ = !backward_;
    return Status();
  }

 private:
  Status Run(const cuda::Launch& launch, const KernelBuffers& buffers) {
    const RidgeHostKernel* kernel = program_.Find(text_.source, launch.function);
    if (kernel == nullptr)
      return Status(ErrorCode::kInternal, launch.function + " is not compiled");
    if (kernel->parameters != static_cast<int>(launch.arguments.size()))
      return Status(ErrorCode::kInternal, launch.function + " has another number of parameters");
    std::vector<void*> arguments;
    for (const cuda::Argument& argument : launch.arguments)
      arguments.push_back(AddressOf(argument, buffers));
    const std::string wrong =
        RunLaunch({kernel, static_cast<unsigned>(launch.blocks),
                   static_cast<unsigned>(launch.threads), arguments.data()},
                  backward_ ? ThreadOrder::kBackward : ThreadOrder::kForward, program_.now());
    if (!wrong.empty()) return Status(ErrorCode::kInternal, launch.function + ": " + wrong);
    for (const auto& [operand, copy] : copies_) {
      if (!copy->intact())
        return Status(ErrorCode::kInternal, launch.function + " wrote around an operand");
    }
    return Status();
  }

  void* AddressOf(const cuda::Argument& argument, const KernelBuffers& buffers) {
    const auto index = static_cast<size_t>(argument.index);
    switch (argument.kind) {
      case cuda::Argument::Kind::kInput:
        return call_.has_input(index) ? Copy(buffers.inputs[index]) : nullptr;
      case cuda::Argument::Kind::kOutput:
        return Copy(buffers.outputs[index]);
      case cuda::Argument::Kind::kWorkspace:
        break;
    }
    return Copy(buffers.workspace) + argument.offset_bytes;
  }

  // Operands that share bytes share their copy.
  void CopyIn(const void* from, int64_t bytes) {
    const auto [at, is_new] = copies_.try_emplace(from, nullptr);
    if (!is_new) return;
    at->second = std::make_unique<Exact>(bytes);
    std::memcpy(at->second->at(), from, static_cast<size_t>(bytes));
  }
  void CopyOut(void* to, int64_t bytes) {
    std::memcpy(to, copies_.at(to)->at(), static_cast<size_t>(bytes));
  }
  std::byte* Copy(const void* of) { return copies_.at(of)->at(); }

  const cuda::KernelText text_;
  const OpCall call_;
  const TextProgram& program_;
  bool backward_ = false;
  std::map<const void*, std::unique_ptr<Exact>> copies_;
};

class TextBackend : public ForwardingBackend {
 public:
  TextBackend(Backend& host, const TextProgram& program)
      : ForwardingBackend(host), program_(program) {}

  const std::string& name() const override { return name_; }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    return cuda::WrittenCandidates(op, call, available);
  }
  int64_t LayoutBytes(LayoutId, const TensorType& type) const override { return type.bytes(); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return cuda::ReorderChoice(type, from, to);
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    RIDGE_ASSIGN_OR_RETURN(cuda::WrittenKernel written, cuda::WriteChoice(op, call, choice));
    return MakeTextKernel(std::move(written.text), call, program_);
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return MakeTextKernel(cuda::ReorderText(type, choice.input_layouts.at(0)),
                          {"reorder", {type}, {type}, {}}, program_);
  }

 private:
  const std::string name_ = "cuda_text";
  const TextProgram& program_;
};

}  // namespace

std::unique_ptr<Kernel> MakeTextKernel(cuda::KernelText text, const OpCall& call,
                                       const TextProgram& program) {
  return std::make_unique<TextKernel>(std::move(text), call, program);
}

std::unique_ptr<Backend> MakeTextBackend(Backend& host, const TextProgram& program) {
  return std::make_unique<TextBackend>(host, program);
}

}  // namespace ridge::cuda_text
