// LengthClasses: the samples of a source by their length, for batches of one length each.
//
// A sample is as long as its field attention_mask says: up to its last 1, or from its first one
// where the padding stands in front.  It belongs to the shortest length that holds it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

// Batches of samples of at most `length` tokens.
struct BatchLength {
  int64_t length = 0;
  int64_t batch = 0;
  bool operator==(const BatchLength&) const = default;
};

struct LengthClass {
  BatchLength of;
  std::vector<uint32_t> samples;  // of the source, ascending

  // Of an epoch; what fills none is left out.
  int64_t batches() const { return static_cast<int64_t>(samples.size()) / of.batch; }
};

struct LengthClasses {
  std::vector<LengthClass> classes;  // shortest first
  bool padded_in_front = false;

  int64_t batches() const;
  int64_t dropped() const;  // samples of an epoch that are in no batch
  int64_t bytes() const;
};
using LengthClassesPtr = std::shared_ptr<const LengthClasses>;

// `lengths`: ascending, the last one that of the whole field.  Samples that fill no batch of their
// length belong to the next one.  The longest has at least a batch: where too few samples are that
// long, shorter ones are added.
// Fails with kInvalidData where the source has no field attention_mask of that length, and with
// kUnsupported where it draws its samples anew in each epoch.
// REQUIRES: the source has a batch of the longest length.
Result<LengthClassesPtr> FindLengthClasses(const Source& source,
                                           const std::vector<BatchLength>& lengths);

// The sample that follows `sample` in its class, at the end the first one.
uint32_t NextOfClass(const LengthClass& of, uint32_t sample);

// The tokens of a sample's field attention_mask; 0 where there is none.
int64_t MaskLength(const Source& source);

}  // namespace ridge
