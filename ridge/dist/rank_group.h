// RankGroup: some of a job's ranks, which exchange with each other in one call.
//
// All ranks of the job exchange at the same time, each within its own group.
#pragma once
#include <vector>

#include "ridge/dist/rank_doing.h"

namespace ridge {

class RankGroup {
 public:
  // `ranks`: of the job, in the order of the group; communicator.rank() is one of them.  `name`: of
  // the exchanges (Communicator::Name).  It and the communicator outlive the group.
  RankGroup(Communicator& communicator, std::vector<int64_t> ranks, const char* name)
      : communicator_(communicator),
        ranks_(std::move(ranks)),
        name_(name),
        sends_(static_cast<size_t>(communicator.size())),
        receives_(static_cast<size_t>(communicator.size())) {}

  int64_t size() const { return static_cast<int64_t>(ranks_.size()); }

  // What the next Exchange() moves to and from the i-th of the group; what is this rank's own is
  // ignored.
  void Send(int64_t i, const std::byte* from, int64_t bytes) {
    sends_[At(i)] = {from, static_cast<size_t>(bytes)};
  }
  void Receive(int64_t i, std::byte* to, int64_t bytes) {
    receives_[At(i)] = {to, static_cast<size_t>(bytes)};
  }
  // Fails as Communicator::Exchange does.
  Status Exchange() {
    const NamedExchanges named(communicator_, name_);
    const Status status = communicator_.Exchange(sends_, receives_);
    for (const int64_t rank : ranks_) {
      sends_[static_cast<size_t>(rank)] = {};
      receives_[static_cast<size_t>(rank)] = {};
    }
    return status;
  }

 private:
  size_t At(int64_t i) const { return static_cast<size_t>(ranks_[static_cast<size_t>(i)]); }

  Communicator& communicator_;
  const std::vector<int64_t> ranks_;
  const char* const name_;
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
};

}  // namespace ridge
