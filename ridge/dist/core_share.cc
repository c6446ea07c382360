#include "ridge/dist/core_share.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "ridge/core/threads.h"
#include "ridge/dist/agreement.h"
#include "ridge/dist/gather.h"

namespace ridge {
namespace {

struct Place {
  std::array<char, 256> machine{};
  std::array<bool, CPU_SETSIZE> cpus{};
  bool operator==(const Place&) const = default;
};

Place PlaceOfThisRank() {
  Place place;
  (void)gethostname(place.machine.data(), place.machine.size() - 1);
  for (const int cpu : AllowedCpus(CPU_SETSIZE)) place.cpus[static_cast<size_t>(cpu)] = true;
  return place;
}

}  // namespace

Result<int64_t> ThreadsOfRank(Communicator& ranks) {
  const Place mine = PlaceOfThisRank();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Place> all, GatherFromAll(ranks, mine));
  const int64_t threads = AvailableThreads();
  const char* given = std::getenv("OMP_NUM_THREADS");
  if (given != nullptr && std::atoi(given) > 0) return threads;
  const int64_t sharing = std::count(all.begin(), all.end(), mine);
  return std::max<int64_t>(1, threads / sharing);
}

Result<bool> AllHaveACoreToSpare(Communicator& ranks, int threads) {
  const Place mine = PlaceOfThisRank();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Place> all, GatherFromAll(ranks, mine));
  const std::ptrdiff_t sharing = std::count(all.begin(), all.end(), mine);
  const bool lacks = sharing * (threads + 1) > AllowedCores();
  RIDGE_ASSIGN_OR_RETURN(const bool one_lacks, Agreement(&ranks).Any(lacks));
  return !one_lacks;
}

Result<std::optional<int>> FirstCoreOfRank(Communicator& ranks, int threads) {
  const Place mine = PlaceOfThisRank();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Place> all, GatherFromAll(ranks, mine));
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), mine));
  if (sharing * threads != AllowedCores()) return std::optional<int>();
  const auto before = std::count(all.begin(), all.begin() + ranks.rank(), mine);
  return std::optional<int>(static_cast<int>(before) * threads);
}

Result<std::vector<int>> FirstRankOfMachines(Communicator& ranks) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Place> all, GatherFromAll(ranks, PlaceOfThisRank()));
  std::set<std::array<char, 256>> machines;
  std::vector<int> first;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (machines.insert(all[rank].machine).second) first.push_back(static_cast<int>(rank));
  }
  return first;
}

}  // namespace ridge
