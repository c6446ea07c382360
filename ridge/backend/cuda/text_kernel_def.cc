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

Result<WrittenKernel> WriteKernel(const OpDef& op, const OpCall& call) {
  if (WritesNothing(call)) return WrittenKernel{"cuda.nothing", {}};
  const char* reason = refusal::kNoKernel;
  for (const TextKernelDef& def : AllTextKernels()) {
    if (!def.Runs(op)) continue;
    WrittenKernel written{def.name, {}};
    reason = def.write(op, call, written.text);
    if (reason == nullptr) return written;
  }
  return Status(ErrorCode::kUnsupported, reason);
}

KernelCandidates WrittenCandidates(const OpDef& op, const OpCall& call) {
  const Result<WrittenKernel> written = WriteKernel(op, call);
  if (!written.ok()) return {{}, {{"cuda", written.status().message()}}};
  KernelChoice choice = RowMajorChoice(op, call, written->name);
  if (!written->text.in_place) choice.in_place.clear();
  choice.workspace_bytes = written->text.workspace_bytes;
  choice.key = written->name + " " + CallKey(op, call);
  return {{std::move(choice)}, {}};
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
