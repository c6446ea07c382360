// The table of all kernels whose text we write, and what their texts have in common.
#include "ridge/backend/cuda/text_kernel_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ridge::cuda {

#define RIDGE_KERNEL(Name) TextKernelDef Name##TextKernel();
#include "ridge/backend/cuda/kernels/kernels.def"
#undef RIDGE_KERNEL

namespace {

bool WritesNothing(const OpCall& call) {
  return std::all_of(call.outputs.begin(), call.outputs.end(),
                     [](const TensorType& type) { return type.elements() == 0; });
}

}  // namespace

bool TextKernelDef::Runs(const OpDef& op) const {
  return std::any_of(ops.begin(), ops.end(), [&](const std::string& own) {
    return own == op.name || (own == "*" && (op.elementwise != nullptr || op.name == "fused"));
  });
}

const std::vector<TextKernelDef>& AllTextKernels() {
#define RIDGE_KERNEL(Name) Name##TextKernel(),
  static const std::vector<TextKernelDef> kernels = {
#include "ridge/backend/cuda/kernels/kernels.def"
  };
#undef RIDGE_KERNEL
  return kernels;
}

Result<WrittenKernel> WriteKernel(const OpDef& op, const OpCall& call, LayoutId layout) {
  if (WritesNothing(call)) return WrittenKernel{"cuda.nothing", {}};
  const char* reason = refusal::kNoKernel;
  for (const TextKernelDef& def : AllTextKernels()) {
    const auto write = layout == kChannelsLast ? def.write_channels_last : def.write;
    if (!def.Runs(op) || write == nullptr) continue;
    WrittenKernel written{def.name, {}, def.row_major_inputs, def.row_major_outputs};
    reason = write(op, call, written.text);
    if (reason == nullptr) return written;
  }
  return Status(ErrorCode::kUnsupported, reason);
}

namespace {

KernelChoice ChoiceOf(const OpDef& op, const OpCall& call, const WrittenKernel& written) {
  KernelChoice choice = RowMajorChoice(op, call, written.name);
  if (!written.text.in_place) choice.in_place.clear();
  choice.workspace_bytes = written.text.workspace_bytes;
  choice.key = written.name + " " + CallKey(op, call);
  return choice;
}

void AddChannelsLast(const OpDef& op, const OpCall& call, KernelCandidates& found) {
  const Result<WrittenKernel> written = WriteKernel(op, call, kChannelsLast);
  if (!written.ok()) return;
  KernelChoice choice = ChoiceOf(op, call, *written);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    choice.input_layouts[i] = ChannelsLastOf(call.inputs[i]);
  for (const size_t i : written->row_major_inputs) choice.input_layouts[i] = kRowMajor;
  for (size_t o = 0; o < call.outputs.size(); ++o)
    choice.output_layouts[o] = ChannelsLastOf(call.outputs[o]);
  for (const size_t o : written->row_major_outputs) choice.output_layouts[o] = kRowMajor;
  choice.key += " " + LayoutNameOf(kChannelsLast);
  found.choices.push_back(std::move(choice));
}

// What an optimizer writes has the layout of the parameter, whatever its gradient has.
bool MayBeChannelsLast(const OpDef& op, const OpCall& call, std::span<const LayoutId> available) {
  if (op.cost_class != CostClass::kOptimizer) return AnyChannelsLast(call, available);
  return AnyChannelsLast(call, available.first(std::min<size_t>(available.size(), 1)));
}

}  // namespace

KernelCandidates WrittenCandidates(const OpDef& op, const OpCall& call,
                                   std::span<const LayoutId> available) {
  KernelCandidates found;
  if (MayBeChannelsLast(op, call, available)) AddChannelsLast(op, call, found);
  const Result<WrittenKernel> written = WriteKernel(op, call);
  if (written.ok()) {
    found.choices.push_back(ChoiceOf(op, call, *written));
  } else {
    found.refusals.push_back({"cuda", written.status().message()});
  }
  for (KernelChoice& choice : found.choices) TakeEitherLayout(call, available, choice);
  return found;
}

Result<WrittenKernel> WriteChoice(const OpDef& op, const OpCall& call, const KernelChoice& choice) {
  return WriteKernel(op, call, IsChannelsLast(call, choice) ? kChannelsLast : kRowMajor);
}

KernelText ReorderText(const TensorType& type, LayoutId from) {
  const int64_t batch = type.dims.at(0), channels = type.dims.at(1);
  const int64_t positions = type.elements() / std::max<int64_t>(batch * channels, 1);
  Dims x = {batch, channels, positions}, y = {batch, positions, channels};
  if (from == kChannelsLast) std::swap(x, y);
  const OpDef& op = *FindOp("transpose");
  const OpCall call{"reorder",
                    {{type.dtype, x}},
                    {{type.dtype, y}},
                    {{"permutation", std::vector<int64_t>{0, 2, 1}}}};
  return std::move(WriteKernel(op, call)->text);
}

KernelChoice ReorderChoice(const TensorType& type, LayoutId from, LayoutId to) {
  KernelChoice choice;
  choice.kernel = "cuda.reorder";
  choice.input_layouts = {from};
  choice.output_layouts = {to};
  choice.key = fmt::format("{} {} {}->{}", choice.kernel, TypeToString(type), LayoutNameOf(from),
                           LayoutNameOf(to));
  return choice;
}

const char* StorageType(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "i64";
    case DType::kI32:
      return "int";
    case DType::kU8:
      return "u8";
    case DType::kI8:
      return "i8";
    case DType::kBool:
      return "Bool";
    case DType::kI16:
      return "i16";
    case DType::kU16:
      return "u16";
    case DType::kU32:
      return "u32";
    case DType::kU64:
      return "u64";
    default:
      return nullptr;
  }
}

const char* ComputeType(DType dtype) {
  const bool exact = (IsFloat(dtype) && dtype != DType::kF64) || dtype == DType::kBool ||
                     dtype == DType::kU8 || dtype == DType::kI8;
  if (StorageType(dtype) == nullptr) return nullptr;
  return exact ? "float" : "double";
}

bool StoresAll(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && StorageType(call.inputs[i].dtype) == nullptr) return false;
  }
  return std::all_of(call.outputs.begin(), call.outputs.end(),
                     [](const TensorType& type) { return StorageType(type.dtype) != nullptr; });
}

const char* ComputeTypeOf(const OpCall& call) {
  const auto wide = [](DType dtype) { return std::strcmp(ComputeType(dtype), "double") == 0; };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && wide(call.inputs[i].dtype)) return "double";
  }
  for (const TensorType& type : call.outputs) {
    if (wide(type.dtype)) return "double";
  }
  return "float";
}

std::string Literal(double value) {
  if (std::isnan(value)) return "NotANumber<R>()";
  if (std::isinf(value)) return value > 0 ? "Infinity<R>()" : "-Infinity<R>()";
  const bool whole = value == std::trunc(value) && std::abs(value) < 1e15;
  return whole ? fmt::format("R({:.1f})", value) : fmt::format("R({})", value);
}

}  // namespace ridge::cuda
