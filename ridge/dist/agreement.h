// Agreement: what the ranks of a job decide together.  Every call is one that all ranks make.
//
// The constructor allocates; Any() allocates nothing.
#pragma once
#include <string>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

// What mends ranks that were started with other words.
inline constexpr char kStartAlike[] =
    "one program, one command line and the same RIDGE_* variables everywhere";

class Agreement {
 public:
  // `communicator`: nullptr for a job of one rank, which agrees with itself.
  explicit Agreement(Communicator* communicator);

  int rank() const { return communicator_ == nullptr ? 0 : communicator_->rank(); }
  int size() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
  // Rank 0 alone writes and prints.
  bool leads() const { return rank() == 0; }

  // Whether `mine` is true at any rank.  Every rank tells the others a number beside it, below
  // 2^63; told() has them, by rank, until the next call.
  Result<bool> Any(bool mine, uint64_t number = 0);
  const std::vector<uint64_t>& told() const { return told_; }
  // Fails at all ranks unless `mine` is the same everywhere; `what` names it, and `hint` says what
  // to do: "rank 2 has another checkpoint than rank 0. hint: ...".
  Status Same(const std::string& what, const std::string& mine, const std::string& hint = "",
              ErrorCode code = ErrorCode::kInvalidArgument);
  // Replaces `mine` at all ranks by the failure of the first rank that has one, "MESSAGE (rank 2)".
  // Fails as Exchange does.
  Status ShareFailure(Status& mine);
  // The numbers of every rank, by rank.
  Result<std::vector<std::vector<double>>> All(const std::vector<double>& mine);

 private:
  Status ExchangeNumbers(uint64_t mine);

  Communicator* const communicator_;
  std::vector<uint64_t> numbers_, told_;  // by rank
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
};

}  // namespace ridge
