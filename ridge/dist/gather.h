// Every rank's value, at every rank; and a barrier.
#pragma once
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

// Returns when all ranks have called it.  Fails as Exchange does.
inline Status Barrier(Communicator& ranks) { return GatherFromAll(ranks, char{0}).status(); }

}  // namespace ridge
