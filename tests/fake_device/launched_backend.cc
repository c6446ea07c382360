#include "tests/fake_device/launched_backend.h"

#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/forwarding_backend.h"

namespace ridge::fake {
namespace {

class LaunchedKernel : public Kernel {
 public:
  LaunchedKernel(std::string what, const LaunchOn& launch_on, std::unique_ptr<Kernel> inner)
      : what_(std::move(what)), launch_on_(launch_on), inner_(std::move(inner)) {}

  // In the order of the buffers.
  std::vector<int64_t> input_bytes, output_bytes;
  int64_t workspace_bytes = 0;

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    HostLaunch launch = {.what = what_, .kernel = *inner_, .buffers = buffers, .touched = {}};
    for (size_t i = 0; i < buffers.inputs.size(); ++i)
      launch.touched.push_back({buffers.inputs[i], input_bytes[i], false});
    for (size_t k = 0; k < buffers.outputs.size(); ++k)
      launch.touched.push_back({buffers.outputs[k], output_bytes[k], true});
    if (workspace_bytes > 0) {
      launch.touched.push_back({buffers.workspace, workspace_bytes, true});
    } else {
      launch.buffers.workspace = nullptr;
    }
    return launch_on_(stream, launch);
  }

 private:
  const std::string what_;
  const LaunchOn& launch_on_;
  const std::unique_ptr<Kernel> inner_;
};

class LaunchedBackend : public ForwardingBackend {
 public:
  LaunchedBackend(Backend& inner, Device& device, LaunchOn launch_on)
      : ForwardingBackend(inner), device_(device), launch_on_(std::move(launch_on)) {}

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
    auto kernel = std::make_unique<LaunchedKernel>(std::move(what), launch_on_, std::move(inner));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      kernel->input_bytes.push_back(
          call.has_input(i) ? inner_.LayoutBytes(choice.input_layouts[i], call.inputs[i]) : 0);
    }
    for (size_t k = 0; k < call.outputs.size(); ++k)
      kernel->output_bytes.push_back(inner_.LayoutBytes(choice.output_layouts[k], call.outputs[k]));
    kernel->workspace_bytes = choice.workspace_bytes;
    return kernel;
  }

  Device& device_;
  const LaunchOn launch_on_;
};

}  // namespace

std::function<Status()> RunOnHostAddresses(const HostLaunch& launch,
                                           const std::function<void*(const void*)>& find) {
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const void* input : launch.buffers.inputs) from.push_back(find(input));
  for (void* output : launch.buffers.outputs) to.push_back(find(output));
  void* const workspace = find(launch.buffers.workspace);
  return [&kernel = launch.kernel, from, to, workspace] {
    return cpu::RunOnHost(kernel, {from, to, workspace});
  };
}

std::unique_ptr<Backend> MakeLaunchedBackend(Backend& inner, Device& device, LaunchOn launch_on) {
  return std::make_unique<LaunchedBackend>(inner, device, std::move(launch_on));
}

}  // namespace ridge::fake
