// DataDigest: lets a resumed run detect changed data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

struct SourceDigest {
  std::string part;  // "training", "validation", "test"
  int64_t samples = 0;
  uint32_t crc32c = 0;  // of the fields' names and types, and of samples
  bool operator==(const SourceDigest&) const = default;
};
using DataDigest = std::vector<SourceDigest>;

// Reads all samples of data up to 256 MiB, which takes less time than loading them, and of larger
// data as many, evenly spaced.  Each source may be null.  Samples that are skipped count as bad
// ones. Fails as reading does.
Result<DataDigest> DigestData(const SourcePtr& train, const SourcePtr& validation,
                              const SourcePtr& test, const BadRecordsPtr& bad_records = nullptr);

// "csv:a.csv, which has 86 training samples; the run has used 43"; "" when nothing differs, or when
// `then` is empty (a run of a version without digests).  `name`: the user's data spec.
std::string DataDifference(const std::string& name, const DataDigest& now, const DataDigest& then);

}  // namespace ridge
