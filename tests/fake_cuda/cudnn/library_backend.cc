#include "tests/fake_cuda/cudnn/library_backend.h"

#include <cstring>

#include "ridge/backend/cuda/layouts.h"
#include "ridge/backend/forwarding_backend.h"

namespace ridge::fake_cuda {
namespace {

// One copy, with addresses of the host.
struct Copy {
  TensorType type;
  bool to_channels_last;
  const char* from;
  char* to;

  // [N, C, rest] and [N, rest, C].
  void Run() const {
    const int64_t channels = type.dims[1], bytes = BytesPerElement(type.dtype);
    const int64_t rest = type.elements() / std::max<int64_t>(type.dims[0] * channels, 1);
    for (int64_t i = 0; i < type.elements(); ++i) {
      const int64_t n = i / channels / rest, c = i / rest % channels, r = i % rest;
      const int64_t last = (n * rest + r) * channels + c;
      std::memcpy(to + (to_channels_last ? last : i) * bytes,
                  from + (to_channels_last ? i : last) * bytes, static_cast<size_t>(bytes));
    }
  }
};

cuda::DriverCode RunCopy(void* argument) {
  static_cast<const Copy*>(argument)->Run();
  return cuda::DriverCode::kSuccess;
}
void FreeCopy(void* argument) { delete static_cast<Copy*>(argument); }

class ReorderKernel : public Kernel {
 public:
  ReorderKernel(const FakeGpu& gpu, const TensorType& type, LayoutId to)
      : gpu_(gpu), type_(type), to_(to) {}
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    const auto host = [&](const void* at) {
      return static_cast<char*>(gpu_.hooks.inside(reinterpret_cast<cuda::DevicePtr>(at)));
    };
    auto copy = std::make_unique<Copy>(
        Copy{type_, to_ == cuda::kChannelsLast, host(buffers.inputs[0]), host(buffers.outputs[0])});
    return gpu_.driver.Check(gpu_.hooks.launch(static_cast<cuda::CudaStream&>(stream).handle(),
                                               RunCopy, copy.release(), FreeCopy),
                             "cuLaunchKernel");
  }

 private:
  const FakeGpu& gpu_;
  const TensorType type_;
  const LayoutId to_;
};

class LibraryBackend : public ForwardingBackend {
 public:
  LibraryBackend(Backend& reference, cuda::KernelLibrary& library, const FakeGpu& gpu)
      : ForwardingBackend(reference), library_(library), gpu_(gpu) {}

  Device& device() override { return *gpu_.device; }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelCandidates found;
    library_.AddCandidates(op, call, available, found);
    return found;
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    return library_.Create(op, call, choice);
  }
  int64_t LayoutBytes(LayoutId, const TensorType& type) const override { return type.bytes(); }
  KernelChoice Reorder(const TensorType&, LayoutId from, LayoutId to) override {
    KernelChoice choice;
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    return choice;
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return std::unique_ptr<Kernel>(
        std::make_unique<ReorderKernel>(gpu_, type, choice.output_layouts[0]));
  }

 private:
  cuda::KernelLibrary& library_;
  const FakeGpu& gpu_;
};

}  // namespace

std::unique_ptr<Backend> MakeLibraryBackend(Backend& reference, cuda::KernelLibrary& library,
                                            const FakeGpu& gpu) {
  return std::make_unique<LibraryBackend>(reference, library, gpu);
}

}  // namespace ridge::fake_cuda
