// TextKernelDef: all facts about one kernel whose text we write, in one record.
//
// A definition lives in the kernel's own file in kernels/ and is listed in kernels.def.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/graph/op_def.h"
#include "ridge/lower/kernel_query.h"

namespace ridge::cuda {

// Reasons of refusals; `ridge plan --why` prints them.
namespace refusal {
inline constexpr const char* kDType = "dtype";
inline constexpr const char* kRank = "rank";
inline constexpr const char* kAttribute = "attribute value";
inline constexpr const char* kExpression = "expression step";
inline constexpr const char* kSize = "size";
inline constexpr const char* kLayout = "layout";
inline constexpr const char* kNoKernel = "no kernel for CUDA";
}  // namespace refusal

struct TextKernelDef {
  std::string name = {};              // KernelChoice::kernel: "cuda.softmax"
  std::vector<std::string> ops = {};  // operators; "*": every pointwise one
  // Writes the kernel of a call; or returns one of refusal::*.
  // REQUIRES: the operator accepts the call, and an output has elements.
  const char* (*write)(const OpDef& op, const OpCall& call, KernelText& text) = nullptr;
  // The same where all operands that have layouts are in channels-last.  nullptr: it has none.
  const char* (*write_channels_last)(const OpDef& op, const OpCall& call,
                                     KernelText& text) = nullptr;
  // That are row-major there too.
  std::vector<size_t> row_major_inputs = {}, row_major_outputs = {};

  bool Runs(const OpDef& op) const;
};

// All of them, in the order of kernels.def.
const std::vector<TextKernelDef>& AllTextKernels();

struct WrittenKernel {
  std::string name;  // KernelChoice::kernel
  KernelText text;
  std::vector<size_t> row_major_inputs = {}, row_major_outputs = {};
};
// The first kernel that takes the call with its operands in this layout; without one, the status
// says why.  Calls whose outputs have no elements launch nothing.
Result<WrittenKernel> WriteKernel(const OpDef& op, const OpCall& call, LayoutId layout = kRowMajor);
// The same as the planner asks for it: in channels-last where an input is at hand so, and
// row-major.
KernelCandidates WrittenCandidates(const OpDef& op, const OpCall& call,
                                   std::span<const LayoutId> available);
// The call of `choice`, one of these.
Result<WrittenKernel> WriteChoice(const OpDef& op, const OpCall& call, const KernelChoice& choice);

// Copies a tensor from one layout into the other.
KernelText ReorderText(const TensorType& type, LayoutId from);
KernelChoice ReorderChoice(const TensorType& type, LayoutId from, LayoutId to);

// Names of the text's types: how a tensor is stored ("BF16"), and what it is computed in: "float",
// or "double" for f64 and integers of more than 8 bits.  nullptr: no kernel stores the dtype.
const char* StorageType(DType dtype);
const char* ComputeType(DType dtype);
// Whether all present inputs and all outputs have a StorageType.
bool StoresAll(const OpCall& call);
// "double" where a present input or an output is computed in it.
const char* ComputeTypeOf(const OpCall& call);

// `value` as a literal of type R in the text: "R(0.5)", "R(1.0 / 0.0)".
std::string Literal(double value);

}  // namespace ridge::cuda
