// Where samples lie after a call, operator by operator.
//
// A law takes where samples lie in the inputs and says where they lie in each output; it says
// nothing when the call couples samples, or when it can't tell that it does not.
#pragma once
#include <span>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

// Where the samples of a batch lie in a value: the axis along which they follow each other, each
// with an equal block of it; or one of these.
inline constexpr int kNoSamples = -1;      // nowhere: the value is the same for every sample
inline constexpr int kMeanOfSamples = -2;  // the mean over the samples of what each contributes
inline constexpr int kSumOfSamples = -3;   // the sum

struct SampleCall {
  const OpCall& call;
  std::span<const int> inputs;  // where samples lie in each; kNoSamples for absent ones
  int64_t batch = 0;            // samples in all
};

struct SampleLaw {
  // One entry an output; empty: coupled.
  std::vector<int> (*axes)(const SampleCall&) = nullptr;
  // The attribute that spells output 0's dims, where there is one (reshape).
  const char* dims_attr = nullptr;
};

// Operators without a law of their own couple samples, unless they are pointwise.
std::vector<int> SampleAxesAfter(const OpDef& op, const SampleCall& s);

// nullptr: output 0's dims follow from the inputs.
const char* DimsAttr(const OpDef& op);

}  // namespace ridge
