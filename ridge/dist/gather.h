// Every rank's value, at every rank; a text of the first; and a barrier.
#pragma once
#include <string>
#include <type_traits>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

// By rank.  For facts of a few bytes.  Fails as Exchange does.
template <typename T>
Result<std::vector<T>> GatherFromAll(Communicator& ranks, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto count = static_cast<size_t>(ranks.size());
  std::vector<T> all(count, mine);
  const std::vector<std::span<const std::byte>> sends(count, std::as_bytes(std::span(&mine, 1)));
  std::vector<std::span<std::byte>> receives;
  for (T& one : all) receives.push_back(std::as_writable_bytes(std::span(&one, 1)));
  RIDGE_RETURN_IF_ERROR(ranks.Exchange(sends, receives));
  return all;
}

// The text of rank 0, at every rank.  Fails as Exchange does.
inline Result<std::string> TextOfFirst(Communicator& ranks, std::string mine) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<size_t> sizes, GatherFromAll(ranks, mine.size()));
  const auto count = static_cast<size_t>(ranks.size());
  std::vector<std::span<const std::byte>> sends(count);
  std::vector<std::span<std::byte>> receives(count);
  if (ranks.rank() == 0) {
    sends.assign(count, std::as_bytes(std::span(mine)));
  } else {
    mine.assign(sizes[0], ' ');
    receives[0] = std::as_writable_bytes(std::span(mine));
  }
  RIDGE_RETURN_IF_ERROR(ranks.Exchange(sends, receives));
  return mine;
}

// Returns when all ranks have called it.  Fails as Exchange does.
inline Status Barrier(Communicator& ranks) { return GatherFromAll(ranks, char{0}).status(); }

}  // namespace ridge
