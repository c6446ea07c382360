#include "ridge/runtime/step_kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ridge {
namespace {

// Same layout on both sides.
class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(int64_t bytes) : bytes_(bytes) {}
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    stream.Copy(buffers.outputs[0], buffers.inputs[0], bytes_);
    return Status();
  }

 private:
  const int64_t bytes_;
};

class HostKernel : public Kernel {
 public:
  HostKernel(std::unique_ptr<Kernel> kernel, Stream& host)
      : kernel_(std::move(kernel)), host_(host) {}
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    RIDGE_RETURN_IF_ERROR(stream.Synchronize());
    RIDGE_RETURN_IF_ERROR(kernel_->Enqueue(host_, buffers));
    return host_.Synchronize();
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  Stream& host_;
};

Result<std::unique_ptr<Kernel>> MakeCopyKernel(const StepPlan& step, const PlannedNode& node,
                                               Backend& backend) {
  if (node.choice.kernel != "copy") return backend.CreateReorder(node.call.inputs[0], node.choice);
  const auto part_bytes = [&](int value) {
    return step.values[static_cast<size_t>(value)].part_bytes();
  };
  // A part may be rounded to the device's alignment.
  const int64_t bytes = std::min(part_bytes(node.inputs[0]), part_bytes(node.outputs[0]));
  return std::unique_ptr<Kernel>(std::make_unique<CopyKernel>(bytes));
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeStepKernel(const StepPlan& step, const PlannedNode& node,
                                               Backend& backend) {
  if (node.on_host) {
    Backend& host = *backend.host();
    RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                           host.Create(*node.def, node.call, node.choice));
    return std::unique_ptr<Kernel>(
        std::make_unique<HostKernel>(std::move(kernel), host.device().stream(0)));
  }
  if (node.def != nullptr) return backend.Create(*node.def, node.call, node.choice);
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeCopyKernel(step, node, backend));
  return backend.Watch(std::move(kernel), node.call.where);
}

bool HasNodesOnHost(const Program& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const StepPlan& step) {
    return std::any_of(step.nodes.begin(), step.nodes.end(),
                       [](const PlannedNode& node) { return node.on_host; });
  });
}

void PrepareKernels(const Program& program, Backend& backend) {
  std::vector<KernelRequest> here, host;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (node.def != nullptr)
        (node.on_host ? host : here).push_back({node.def, &node.call, &node.choice});
    }
  }
  backend.Prepare(here);
  if (!host.empty()) backend.host()->Prepare(host);
}

}  // namespace ridge
