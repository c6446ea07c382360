// RewriteRules: what the rewrites ask of a device before kernels and layouts are chosen.
//
// Answers are a function of the question; no kernel is made for one.
#pragma once
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

// Inputs and outputs of an operator.
struct DTypeGroup {
  std::vector<size_t> inputs, outputs;
  bool rest = false;  // the last of `inputs` also means all after it
};

// Contractions whose operands have 16 bits, against f32.
struct ReducedRates {
  double speed = 1;           // FLOPs per second
  double flops_per_byte = 0;  // in f32, in the time of a byte to or from memory
  // FLOPs for each element that goes in or out, from which on they save more time than casts cost;
  // above 0.
  int64_t least_flops_per_element = 1;
};

// Columns of products: a number of them that is no multiple of `needed` is slow, and is padded to
// one of `padded`.
struct ProductMultiple {
  int64_t needed = 1, padded = 1;
};
// Of 16 bits on tensor cores, which read and write addresses that are multiples of 16 bytes.
inline constexpr ProductMultiple kTensorCoreMultiple = {8, 64};

class RewriteRules {
 public:
  virtual ~RewriteRules() = default;
  // Whether a kernel runs `call`, a node that joins several, in one pass.
  // REQUIRES: the operator accepts the call.
  virtual bool Fuses(const OpDef& op, const OpCall& call) const = 0;
  // Whether the kernel of a group of pointwise nodes (`fused`) reads, holds and writes this type.
  virtual bool GroupsPointwise(DType) const { return true; }
  // Whether kernels of this operator with operands of 16 bits can write their sums in f32.
  virtual bool GivesF32Sums(const OpDef&) const { return true; }
  // Whether conv_grad_weight of such operands gives the gradient of the bias too; else that is a
  // sum of its own.
  virtual bool GivesBiasGradient(DType) const { return true; }
  virtual ProductMultiple MultipleOfProducts() const { return {}; }
  // Whether this update of an optimizer runs in less time than its launch takes, so that it is to
  // share one with others.
  virtual bool GroupsUpdate(const OpCall&) const { return false; }
  virtual ReducedRates RatesOf(DType operands) const = 0;
  // The tensors that kernels of this operator take in 16 bits, each group as a whole, while all
  // else is f32.
  virtual std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const = 0;
};

}  // namespace ridge
