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

// The ranks that may use the cores of this one, and those of them before it.
struct Sharing {
  int ranks = 1, before = 0;
};

Result<Sharing> SharingOf(Communicator& ranks) {
  const Place mine = PlaceOfThisRank();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Place> all, GatherFromAll(ranks, mine));
  return Sharing{
      .ranks = static_cast<int>(std::count(all.begin(), all.end(), mine)),
      .before = static_cast<int>(std::count(all.begin(), all.begin() + ranks.rank(), mine))};
}

}  // namespace

Result<int64_t> ThreadsOfRank(Communicator& ranks) {
  RIDGE_ASSIGN_OR_RETURN(const Sharing sharing, SharingOf(ranks));
  const int64_t threads = AvailableThreads();
  const char* given = std::getenv("OMP_NUM_THREADS");
  if (given != nullptr && std::atoi(given) > 0) return threads;
  return std::max<int64_t>(1, threads / sharing.ranks);
}

Result<bool> AllHaveACoreToSpare(Communicator& ranks, int threads) {
  RIDGE_ASSIGN_OR_RETURN(const Sharing sharing, SharingOf(ranks));
  const bool lacks = sharing.ranks * (threads + 1) > AllowedCores();
  RIDGE_ASSIGN_OR_RETURN(const bool one_lacks, Agreement(&ranks).Any(lacks));
  return !one_lacks;
}

Result<std::optional<int>> FirstCoreOfRank(Communicator& ranks, int threads) {
  RIDGE_ASSIGN_OR_RETURN(const Sharing sharing, SharingOf(ranks));
  if (sharing.ranks * threads != AllowedCores()) return std::optional<int>();
  return std::optional<int>(sharing.before * threads);
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
