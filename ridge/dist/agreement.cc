#include "ridge/dist/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/core/sha256.h"
#include "ridge/dist/gather.h"

namespace ridge {

Agreement::Agreement(Communicator* communicator)
    : communicator_(communicator),
      numbers_(static_cast<size_t>(size())),
      told_(numbers_.size()),
      sends_(numbers_.size()),
      receives_(numbers_.size()) {}

Status Agreement::ExchangeNumbers(uint64_t mine) {
  const auto own = static_cast<size_t>(rank());
  numbers_[own] = mine;
  if (size() == 1) return Status();
  for (size_t other = 0; other < numbers_.size(); ++other) {
    sends_[other] = std::as_bytes(std::span(&numbers_[own], 1));
    receives_[other] = std::as_writable_bytes(std::span(&numbers_[other], 1));
  }
  return communicator_->Exchange(sends_, receives_);
}

// The lowest bit is `mine`.
Result<bool> Agreement::Any(bool mine, uint64_t number) {
  RIDGE_RETURN_IF_ERROR(ExchangeNumbers(number << 1 | (mine ? 1 : 0)));
  bool any = false;
  for (size_t rank = 0; rank < numbers_.size(); ++rank) {
    any = any || (numbers_[rank] & 1) != 0;
    told_[rank] = numbers_[rank] >> 1;
  }
  return any;
}

Status Agreement::Same(const std::string& what, const std::string& mine, const std::string& hint,
                       ErrorCode code) {
  Sha256 hash;
  hash.Add(mine);
  // 60 bits of it.
  RIDGE_RETURN_IF_ERROR(ExchangeNumbers(std::stoull(hash.Hex().substr(0, 15), nullptr, 16)));
  for (size_t other = 1; other < numbers_.size(); ++other) {
    if (numbers_[other] == numbers_[0]) continue;
    return Status(code, fmt::format("rank {} has {} than rank 0{}", other, what,
                                    hint.empty() ? "" : ". hint: " + hint));
  }
  return Status();
}

Status Agreement::ShareFailure(Status& mine) {
  if (communicator_ == nullptr) return Status();
  struct Told {
    ErrorCode code;
    std::array<char, 1000> text;
  };
  Told own = {mine.code(), {}};
  std::copy_n(mine.message().data(), std::min(mine.message().size(), own.text.size() - 1),
              own.text.data());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Told> all, GatherFromAll(*communicator_, own));
  for (size_t other = 0; other < all.size(); ++other) {
    if (all[other].code == ErrorCode::kOk) continue;
    mine = Status(all[other].code, fmt::format("{} (rank {})", all[other].text.data(), other));
    break;
  }
  return Status();
}

Result<std::vector<std::vector<double>>> Agreement::All(const std::vector<double>& mine) {
  RIDGE_RETURN_IF_ERROR(ExchangeNumbers(mine.size()));
  std::vector<std::vector<double>> all(numbers_.size());
  for (size_t other = 0; other < all.size(); ++other) all[other].resize(numbers_[other]);
  all[static_cast<size_t>(rank())] = mine;
  if (size() == 1) return all;
  for (size_t other = 0; other < all.size(); ++other) {
    sends_[other] = std::as_bytes(std::span(mine));
    receives_[other] = std::as_writable_bytes(std::span(all[other]));
  }
  RIDGE_RETURN_IF_ERROR(communicator_->Exchange(sends_, receives_));
  return all;
}

}  // namespace ridge
