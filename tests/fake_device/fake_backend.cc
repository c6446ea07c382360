#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/forwarding_backend.h"
#include "tests/fake_device/fake_device.h"

namespace ridge::fake {
namespace {

class FakeKernel : public Kernel {
 public:
  FakeKernel(std::string what, FakeDevice& device, std::unique_ptr<Kernel> inner)
      : what_(std::move(what)), device_(device), inner_(std::move(inner)) {}

  // In the order of the buffers.
  std::vector<int64_t> input_bytes, output_bytes;
  int64_t workspace_bytes = 0;

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    std::vector<Touched> touched;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t i = 0; i < buffers.inputs.size(); ++i) {
      touched.push_back({buffers.inputs[i], input_bytes[i], false});
      from.push_back(device_.Find(buffers.inputs[i]));
    }
    for (size_t k = 0; k < buffers.outputs.size(); ++k) {
      touched.push_back({buffers.outputs[k], output_bytes[k], true});
      to.push_back(device_.Find(buffers.outputs[k]));
    }
    void* workspace = nullptr;
    if (workspace_bytes > 0) {
      touched.push_back({buffers.workspace, workspace_bytes, true});
      workspace = device_.Find(buffers.workspace);
    }
    static_cast<FakeStream&>(stream).Launch(what_, touched, [this, from, to, workspace] {
      return cpu::RunOnHost(*inner_, {from, to, workspace});
    });
    return Status();
  }

 private:
  const std::string what_;
  FakeDevice& device_;
  const std::unique_ptr<Kernel> inner_;
};

class FakeBackend : public ForwardingBackend {
 public:
  FakeBackend(Backend& inner, FakeDevice& device) : ForwardingBackend(inner), device_(device) {}

  int threads() const override { return 1; }
  Device& device() override { return device_; }
  // All kernels leave room for others.
  KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                    std::span<const LayoutId> available) override {
    KernelCandidates candidates = inner_.SerialCandidates(op, call, available);
    if (candidates.choices.empty()) candidates = inner_.Candidates(op, call, available);
    for (KernelChoice& choice : candidates.choices) choice.one_thread = true;
    return candidates;
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner_.Create(op, call, choice));
    return Wrap(call.where, call, choice, std::move(kernel));
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner_.CreateReorder(type, choice));
    OpCall call;
    call.inputs = call.outputs = {type};
    return Wrap("reorder of " + TypeToString(type), call, choice, std::move(kernel));
  }

 private:
  std::unique_ptr<Kernel> Wrap(std::string what, const OpCall& call, const KernelChoice& choice,
                               std::unique_ptr<Kernel> inner) {
    auto kernel = std::make_unique<FakeKernel>(std::move(what), device_, std::move(inner));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      kernel->input_bytes.push_back(
          call.has_input(i) ? inner_.LayoutBytes(choice.input_layouts[i], call.inputs[i]) : 0);
    }
    for (size_t k = 0; k < call.outputs.size(); ++k)
      kernel->output_bytes.push_back(inner_.LayoutBytes(choice.output_layouts[k], call.outputs[k]));
    kernel->workspace_bytes = choice.workspace_bytes;
    return kernel;
  }

  FakeDevice& device_;
};

}  // namespace

std::unique_ptr<Backend> MakeFakeBackend(Backend& inner, FakeDevice& device) {
  return std::make_unique<FakeBackend>(inner, device);
}

}  // namespace ridge::fake
