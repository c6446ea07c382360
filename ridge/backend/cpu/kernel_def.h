// KernelDef: all facts about one fast kernel of the CPU, in one record.
//
// A definition lives in the kernel's own file in kernels/ and is listed in kernels.def;
// AllKernels() holds them, and no global constructor runs.  OfferCandidates() does what all of them
// have in common: it checks types, and makes choices with their keys.  The reference kernel is no
// record: it takes every call.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/backend/host_kernel.h"
#include "ridge/core/instructions.h"

namespace ridge::cpu {

// State that the kernels of one backend share.
struct CpuContext {
  int threads = 1;
  dnnl::engine engine;
  dnnl::stream stream;
  bool direct_conv = false;          // ConvKernels::kDirect
  InstructionSet instructions = {};  // by which kernels are offered
  bool is_here = true;  // false: they are another CPU's, and the library can't be asked for them

  bool HasAvx512() const { return instructions.vectors == Instructions::kAvx512; }
};

// A call that a kernel is offered or made for.
struct CandidateQuery {
  const CpuContext& cpu;
  const OpDef& op;
  const OpCall& call;
  // Layouts that the inputs have.  Empty where a kernel is made: the choice has the layouts.
  std::span<const LayoutId> available = {};

  LayoutId available_layout(size_t i) const {
    return i < available.size() ? available[i] : kRowMajor;
  }
  // 1 for work that ends before a second thread would wake up, else all threads.
  int threads() const;
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

class Candidates;

inline constexpr int kLastInput = -1;

struct KernelDef {
  // KernelChoice::kernel, or the part of it before '/'.  "{op}" stands for the operator's name.
  std::string name = {};
  std::vector<std::string> ops = {};  // operators; "*": every pointwise one

  // Calls that it takes.  They are checked in this order, `refuse` last.
  bool direct_sums = true;         // false: not with --conv direct
  bool takes_empty = false;        // tensors without elements
  std::vector<DType> dtypes = {};  // of input `typed_by`; none: every dtype
  int typed_by = 0;                // or kLastInput
  bool one_dtype = false;          // all other inputs, and the outputs, have this dtype too
  // One of refusal::*, or nullptr.
  const char* (*refuse)(const CandidateQuery& q) = nullptr;

  // Whether rewrites may join several nodes to this call (RewriteRules::Fuses).  nullptr: never.
  bool (*fuses)(const OpCall& call) = nullptr;

  // What a choice has, unless `offer` changes it.
  double efficiency = 1;
  bool in_place = true;  // bytes are shared as OpDef::in_place allows; false: never
  int64_t (*workspace_bytes)(const CandidateQuery& q) = nullptr;  // nullptr: none

  // Adds choices, or returns one of refusal::*.  nullptr: adds one, row-major.
  const char* (*offer)(const CandidateQuery& q, Candidates& candidates) = nullptr;
  // Adds further choices that only a measurement takes (OfferedKernels::kAll).
  void (*offer_measured)(const CandidateQuery& q, Candidates& candidates) = nullptr;

  // REQUIRES: `choice` is one that was offered for this call.
  Result<std::unique_ptr<Kernel>> (*make)(const CandidateQuery& q,
                                          const KernelChoice& choice) = nullptr;

  bool Runs(const OpDef& op) const;
  std::string NameFor(const OpDef& op) const;
};

// The choices of one kernel for one call, best first.
class Candidates {
 public:
  Candidates(const KernelDef& def, const CandidateQuery& q) : def_(def), q_(q) {}

  // A choice as the record has it, all row-major, for the caller to change.  The reference holds
  // until the next one is added.
  KernelChoice& Add(double efficiency);
  KernelChoice& Add() { return Add(def_.efficiency); }

  // With their keys.
  std::vector<KernelChoice> Take();

 private:
  const KernelDef& def_;
  const CandidateQuery& q_;
  std::vector<KernelChoice> choices_;
};

// KernelDef::make for a kernel that is constructed from its call and a number of threads.
template <typename K>
Result<std::unique_ptr<Kernel>> MakeKernel(const CandidateQuery& q, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(q.call, q.threads()));
}

// All kernels, in the order of kernels.def.
const std::vector<KernelDef>& AllKernels();
// The one of this operator that a KernelChoice::kernel names; nullptr when there is none.
const KernelDef* FindKernel(const OpDef& op, const std::string& kernel);

// kUnsupported: the plan was made where this machine's library had the kernel.
Status UnsupportedChoice(const CandidateQuery& q, const KernelChoice& choice);

// Appends choices and refusals of all kernels.
void OfferCandidates(const CandidateQuery& q, bool measured, KernelCandidates& candidates);

// Row-major inputs and outputs, in_place as the operator allows, no workspace, no key.
KernelChoice MakeChoice(const CandidateQuery& q, const std::string& kernel, double efficiency = 1);
// Sets KernelChoice::key from the other fields.
void SetKey(const CandidateQuery& q, KernelChoice& choice);

// All inputs and outputs are of this dtype.
bool AllOf(const OpCall& call, DType dtype);

}  // namespace ridge::cpu
