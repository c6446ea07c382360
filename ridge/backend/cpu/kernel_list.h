// The fast kernels of the CPU backend, best first.
//
// A kernel is one row of the table in kernel_list.cc: its operator, offer function and create
// function.  A new kernel is one file in kernels/ and one row.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/backend/backend.h"

namespace ridge::cpu {

// State that the kernels of one backend share.
struct CpuContext {
  int threads = 1;
  dnnl::engine engine;
  dnnl::stream stream;
  bool direct_conv = false;  // ConvKernels::kDirect
};

// The arguments of KernelQuery::Offers.
struct Question {
  const CpuContext& cpu;
  const OpDef& op;
  const OpCall& call;
  std::span<const LayoutId> available;

  LayoutId available_layout(size_t i) const {
    return i < available.size() ? available[i] : kRowMajor;
  }
};

// Reasons of refusals; `ridge plan --why` prints them.
namespace refusal {
inline constexpr const char* kDType = "dtype";
inline constexpr const char* kRank = "rank";
inline constexpr const char* kEmpty = "zero-size tensor";
inline constexpr const char* kAttribute = "attribute value";
inline constexpr const char* kEpilogue = "epilogue step";
inline constexpr const char* kNoPrimitive = "oneDNN has no fast implementation";
inline constexpr const char* kExpression = "expression step";
inline constexpr const char* kLayout = "layout";
inline constexpr const char* kInstructions = "instruction set of this CPU";
inline constexpr const char* kDirectOnly = "--conv direct";
inline constexpr const char* kNoGain = "no gain for this shape";
}  // namespace refusal

// Appends choices, or returns one of refusal::*.
using OfferFn = const char* (*)(const Question& q, std::vector<KernelChoice>& choices);
using CreateFn = Result<std::unique_ptr<Kernel>> (*)(const CpuContext& cpu, const OpDef& op,
                                                     const OpCall& call,
                                                     const KernelChoice& choice);

struct KernelFactory {
  const char* op;      // operator, or "*" for every pointwise one
  const char* kernel;  // KernelChoice::kernel, or the part of it before '/'
  OfferFn offer;
  CreateFn create;
};

std::span<const KernelFactory> KernelList();

// 1 for work that ends before a second thread would wake up, else all threads.
int ThreadsFor(const CpuContext& cpu, const OpDef& op, const OpCall& call);

// Row-major inputs and outputs, in_place as the operator allows, no workspace.
KernelChoice MakeChoice(const Question& q, const std::string& kernel, double efficiency = 1);
// Sets KernelChoice::key from the other fields; call it last.
void SetKey(const Question& q, KernelChoice& choice);

// All inputs and outputs are of this dtype / have at least one element.
bool AllOf(const OpCall& call, DType dtype);
bool AnyEmpty(const OpCall& call);

}  // namespace ridge::cpu
