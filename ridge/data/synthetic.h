// SyntheticSource: random samples for timings and tests; stores none.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

// Value i of a field of sample s is a function of (seed, field name, s, i) alone, drawn by Philox:
// floats uniform in [0, 1), integers uniform in [0, classes) (u8 in [0, 256) and others in {0, 1}
// when classes is 0), bool 0 or 1.
class SyntheticSource : public Source {
 public:
  // REQUIRES: samples >= 1.
  SyntheticSource(std::string name, std::vector<Field> fields, int64_t samples, uint64_t seed);

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t resident_bytes() const override { return 0; }
  bool reads_slowly() const override { return slow_; }  // pictures are

 private:
  uint64_t seed_;
  std::vector<uint32_t> streams_;  // one a field
  bool slow_ = false;
};

// Fails with kInvalidArgument when options name no field or no sample.
Result<DataSplits> OpenSynthetic(const DataOptions& options);

}  // namespace ridge
