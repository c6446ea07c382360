// Batch-axis propagation: the sample axis of each output of a call, by operator.
//
// A rule (SampleLaw) maps the sample axes of the inputs to those of the outputs.  It returns
// nothing when the call couples samples or may couple them.
#pragma once
#include <span>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

// The sample axis of a value: the axis that consists of one block per sample, in order and of equal
// size; or one of these.
inline constexpr int kNoSamples = -1;      // replicated: the value is the same for every sample
inline constexpr int kMeanOfSamples = -2;  // the mean over the samples' contributions
inline constexpr int kSumOfSamples = -3;   // the sum

struct SampleCall {
  const OpCall& call;
  std::span<const int> inputs;  // the sample axis of each; kNoSamples for absent ones
  int64_t batch = 0;            // number of samples
};

struct SampleLaw {
  // One entry per output; empty: samples are coupled.
  std::vector<int> (*axes)(const SampleCall&) = nullptr;
  // The attribute that holds output 0's dims, if any (reshape).
  const char* dims_attr = nullptr;
};

// An operator without a rule couples samples, unless it is pointwise.
std::vector<int> SampleAxesAfter(const OpDef& op, const SampleCall& s);

// nullptr: output 0's dims follow from the inputs.
const char* DimsAttr(const OpDef& op);

}  // namespace ridge
