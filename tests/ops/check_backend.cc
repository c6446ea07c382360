#include "tests/ops/check_backend.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/reference/reference_backend.h"

namespace ridge {
namespace {

constexpr int64_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA5;

// Bytes of a device between guard words, and the host's copy of all of it.  Both start as 0xFF: NaN
// for floats.
class Guarded {
 public:
  Guarded(Device& device, int64_t bytes)
      : device_(device),
        bytes_(bytes),
        storage_(Tensor({DType::kU8, {(bytes + 63) / 64 * 64 + 2 * kGuardBytes}})) {
    std::memset(storage_.mutable_data(), kGuard, static_cast<size_t>(storage_.bytes()));
    std::memset(data(), 0xFF, static_cast<size_t>(bytes));
    Result<std::unique_ptr<Memory>> memory = device.Allocate(storage_.bytes());
    RIDGE_CHECK(memory.ok(), memory.status().message());
    memory_ = std::move(*memory);
  }
  unsigned char* data() { return storage_.as_mutable<unsigned char>() + kGuardBytes; }
  std::byte* address() const { return memory_->data() + kGuardBytes; }
  int64_t bytes() const { return bytes_; }
  void Upload() { device_.stream(0).Upload(memory_->data(), storage_.data(), storage_.bytes()); }
  void Download() {
    device_.stream(0).Download(storage_.mutable_data(), memory_->data(), storage_.bytes());
  }
  bool intact() {
    for (int64_t i = -kGuardBytes; i < 0; ++i) {
      if (data()[i] != kGuard) return false;
    }
    for (int64_t i = bytes_; i < (bytes_ + 63) / 64 * 64 + kGuardBytes; ++i) {
      if (data()[i] != kGuard) return false;
    }
    return true;
  }

 private:
  Device& device_;
  int64_t bytes_;
  Tensor storage_;
  std::unique_ptr<Memory> memory_;
};

using Buffers = std::vector<std::unique_ptr<Guarded>>;

std::unique_ptr<Guarded> MakeBuffer(Backend& backend, int64_t bytes) {
  return std::make_unique<Guarded>(backend.device(), bytes);
}

// The operands, which lie on the device before and on the host after.
Status RunKernel(Backend& backend, Kernel& kernel, const KernelBuffers& buffers,
                 const std::vector<Guarded*>& written) {
  Stream& stream = backend.device().stream(0);
  RIDGE_RETURN_IF_ERROR(kernel.Enqueue(stream, buffers));
  for (Guarded* operand : written) operand->Download();
  return stream.Synchronize();
}

Status Reorder(Backend& backend, const TensorType& type, LayoutId from_layout, LayoutId to_layout,
               Guarded& from, Guarded& to) {
  const KernelChoice choice = backend.Reorder(type, from_layout, to_layout);
  RIDGE_ASSIGN_OR_RETURN(auto kernel, backend.CreateReorder(type, choice));
  Guarded workspace(backend.device(), choice.workspace_bytes);
  for (Guarded* operand : {&from, &to, &workspace}) operand->Upload();
  const void* const in = from.address();
  void* const out = to.address();
  return RunKernel(backend, *kernel, {{&in, 1}, {&out, 1}, workspace.address()}, {&to});
}

// One choice on one set of inputs.
struct Trial {
  Backend& backend;
  const OpDef& op;
  const OpCall& call;
  const KernelChoice& choice;
  Buffers inputs;                 // in the layouts of the choice
  std::vector<Tensor> outputs;    // row-major
  std::vector<std::string> bits;  // as the kernel wrote them

  Status LoadInputs(const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      inputs.push_back(nullptr);
      if (!call.has_input(i)) continue;
      const TensorType& type = call.inputs[i];
      const LayoutId layout = choice.input_layouts[i];
      auto plain = MakeBuffer(backend, type.bytes());
      if (type.bytes() > 0)
        std::memcpy(plain->data(), tensors[i].data(), static_cast<size_t>(type.bytes()));
      if (layout == kRowMajor) {
        inputs.back() = std::move(plain);
        continue;
      }
      inputs.back() = MakeBuffer(backend, backend.LayoutBytes(layout, type));
      RIDGE_RETURN_IF_ERROR(Reorder(backend, type, kRowMajor, layout, *plain, *inputs.back()));
    }
    return Status();
  }

  // `shared` is (output, input) that have one buffer, or (-1, -1).
  std::string Run(Kernel& kernel, std::pair<int, int> shared) {
    Guarded workspace(backend.device(), choice.workspace_bytes);
    Buffers buffers;
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<Guarded*> written = {&workspace};
    for (auto& input : inputs) in.push_back(input ? input->address() : nullptr);
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      buffers.push_back(
          MakeBuffer(backend, backend.LayoutBytes(choice.output_layouts[o], call.outputs[o])));
      out.push_back(buffers.back()->address());
      written.push_back(buffers.back().get());
    }
    if (shared.first >= 0) {
      const auto o = static_cast<size_t>(shared.first), i = static_cast<size_t>(shared.second);
      std::memcpy(buffers[o]->data(), inputs[i]->data(), static_cast<size_t>(buffers[o]->bytes()));
      in[i] = out[o];
    }
    for (auto& input : inputs) {
      if (input) input->Upload();
    }
    for (Guarded* operand : written) operand->Upload();
    const Status status = RunKernel(backend, kernel, {in, out, workspace.address()}, written);
    if (!status.ok()) return status.message();
    if (!workspace.intact()) return "it wrote around its workspace";
    for (size_t o = 0; o < buffers.size(); ++o) {
      if (!buffers[o]->intact()) return fmt::format("it wrote around output {}", o);
    }
    return TakeOutputs(buffers);
  }

  std::string TakeOutputs(Buffers& buffers) {
    outputs.clear();
    bits.clear();
    for (size_t o = 0; o < buffers.size(); ++o) {
      Guarded& buffer = *buffers[o];
      bits.emplace_back(reinterpret_cast<const char*>(buffer.data()),
                        static_cast<size_t>(buffer.bytes()));
      Tensor tensor(call.outputs[o]);
      const LayoutId layout = choice.output_layouts[o];
      Guarded plain(backend.device(), tensor.bytes());
      if (layout != kRowMajor) {
        const Status status = Reorder(backend, call.outputs[o], layout, kRowMajor, buffer, plain);
        if (!status.ok()) return status.message();
      }
      Guarded& from = layout == kRowMajor ? buffer : plain;
      if (tensor.bytes() > 0)
        std::memcpy(tensor.mutable_data(), from.data(), static_cast<size_t>(tensor.bytes()));
      outputs.push_back(std::move(tensor));
    }
    return "";
  }
};

// The `tolerance` is that of f32.  One unit in the last place of the narrow floats is more than any
// error of a kernel; f64 must be what it says.
double ToleranceOf(DType dtype, double tolerance) {
  if (dtype == DType::kF64) return std::min(tolerance, 1e-12);
  if (dtype == DType::kBF16) return std::max(tolerance, 0x1p-7);
  return dtype == DType::kF16 ? std::max(tolerance, 0x1p-10) : tolerance;
}

std::string CompareOutput(const Tensor& got, const Tensor& want, double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::abs(want.at(i)));
  }
  const bool exact = !IsFloat(want.type().dtype);
  const double allowed = exact ? 0 : ToleranceOf(want.type().dtype, tolerance) * largest;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.at(i), w = want.at(i);
    const bool same = g == w || (std::isnan(g) && std::isnan(w)) || std::abs(g - w) <= allowed;
    if (!same)
      return fmt::format("element {} is {}, the reference has {}; allowed {}", i, g, w, allowed);
  }
  return "";
}

std::string CheckChoice(Backend& backend, const OpDef& op, const OpCall& call,
                        const KernelChoice& choice, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& expected, double tolerance) {
  Trial trial{backend, op, call, choice, {}, {}, {}};
  const Status loaded = trial.LoadInputs(inputs);
  if (!loaded.ok()) return loaded.message();
  auto kernel = backend.Create(op, call, choice);
  if (!kernel.ok()) return kernel.status().message();
  std::string wrong = trial.Run(**kernel, {-1, -1});
  for (size_t o = 0; wrong.empty() && o < expected.size(); ++o) {
    wrong = CompareOutput(trial.outputs[o], expected[o], tolerance);
    if (!wrong.empty()) wrong = fmt::format("output {}: {}", o, wrong);
  }
  if (!wrong.empty()) return wrong;
  const std::vector<std::string> first = trial.bits;
  wrong = trial.Run(**kernel, {-1, -1});
  if (!wrong.empty() || trial.bits != first) return "the second run differs " + wrong;
  for (const auto& pair : choice.in_place) {
    wrong = trial.Run(**kernel, pair);
    if (!wrong.empty() || trial.bits != first)
      return fmt::format("output {} in place of input {} differs {}", pair.first, pair.second,
                         wrong);
  }
  return "";
}

std::vector<Tensor> RunOnReference(const OpDef& op, const OpCall& call,
                                   const std::vector<Tensor>& inputs) {
  const auto kernel = CreateReferenceKernel(op, call);
  Tensor workspace({DType::kU8, {ReferenceChoice(op, call).workspace_bytes}});
  std::vector<Tensor> outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < inputs.size(); ++i)
    in.push_back(call.has_input(i) ? inputs[i].data() : nullptr);
  for (const TensorType& type : call.outputs) outputs.emplace_back(type);
  for (Tensor& tensor : outputs) out.push_back(tensor.mutable_data());
  const Status status = cpu::RunOnHost(*kernel, {in, out, workspace.mutable_data()});
  RIDGE_CHECK(status.ok(), status.message());
  return outputs;
}

}  // namespace

std::vector<LayoutId> AvailableLayouts(const OpCall& call, LayoutId blocked) {
  std::vector<LayoutId> layouts;
  for (const TensorType& type : call.inputs) {
    const bool takes = type.rank() == 4 && type.elements() > 0 && type.dtype != DType::kI64 &&
                       type.dtype != DType::kF64;
    layouts.push_back(takes ? blocked : kRowMajor);
  }
  return layouts;
}

std::string CheckBackend(Backend& backend, const OpDef& op, const OpCase& op_case, LayoutId blocked,
                         double tolerance, int& fast) {
  const Result<OpCall> call = InferCase(op, op_case);
  if (!call.ok()) return call.status().message();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < call->inputs.size(); ++i) inputs.push_back(CaseInput(op_case, i));
  const std::vector<Tensor> expected = RunOnReference(op, *call, inputs);
  const std::vector<LayoutId> available = AvailableLayouts(*call, blocked);
  const KernelCandidates candidates = backend.Candidates(op, *call, available);
  if (candidates.choices.empty()) return "no kernel is offered";
  for (const KernelChoice& choice : candidates.choices) {
    fast += choice.kernel != "reference";
    const std::string wrong = CheckChoice(backend, op, *call, choice, inputs, expected, tolerance);
    if (!wrong.empty()) return choice.key + ": " + wrong;
  }
  return "";
}

}  // namespace ridge
