// BadRecords: samples that cannot be read, and how many of them a run bears.
//
// A bad sample's row is filled with the next readable sample of the source, by number: a function
// of the data alone, so batches keep their size and their bits for any number of workers and any
// resume point.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct BadRecord {
  std::string origin;  // "photos/cat/1.jpg"
  std::string reason;
  bool operator==(const BadRecord&) const = default;
};

// "fail"; "skip:10", that many; "skip:0.5%", of the training samples.
struct BadRecordsPolicy {
  bool skip = false;
  std::optional<int64_t> most;
  double percent = 0;

  // Fails with kInvalidArgument; the message is the bare reason.
  static Result<BadRecordsPolicy> Parse(const std::string& text);
  int64_t Limit(int64_t samples) const;
};

// Whether a read has failed for what the data are, not for memory or for a mistake of ours.
inline bool IsBadRecord(const Status& status) { return status.code() == ErrorCode::kInvalidData; }

// Thread-safe.
class BadRecords {
 public:
  explicit BadRecords(const BadRecordsPolicy& policy) : policy_(policy) {}

  bool skips() const { return policy_.skip; }

  // Each origin counts once.  `message` may begin with the origin, which is then left out.  Fails
  // with kInvalidData, and the first of the list, when there are more than the run bears.
  // REQUIRES: skips().
  Status Add(const std::string& origin, const std::string& message);

  // From now on there is a limit: before the data are open none is known.  Fails as Add does.
  Status SetSamples(int64_t training_samples);

  int64_t count() const;
  std::vector<BadRecord> List() const;  // in the order in which they were found

 private:
  Status Check() const;  // REQUIRES: mutex_ is held

  const BadRecordsPolicy policy_;
  mutable std::mutex mutex_;  // guards all below
  std::optional<int64_t> limit_;
  std::vector<BadRecord> records_;
  std::set<std::string> origins_;
};

// Several loaders and data sets of a run share one.
using BadRecordsPtr = std::shared_ptr<BadRecords>;

}  // namespace ridge
