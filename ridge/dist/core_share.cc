#include "ridge/dist/core_share.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ridge/core/threads.h"
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

Result<bool> AreOnOneMachine(Communicator& ranks) {
  const auto machine = PlaceOfThisRank().machine;
  RIDGE_ASSIGN_OR_RETURN(const auto all, GatherFromAll(ranks, machine));
  return std::count(all.begin(), all.end(), machine) == ranks.size();
}

}  // namespace ridge
