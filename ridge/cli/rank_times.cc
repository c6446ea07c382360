#include "ridge/cli/rank_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cpu/pin_team.h"
#include "ridge/cli/child_process.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/dist/core_share.h"
#include "ridge/dist/gather.h"
#include "ridge/measure/time_sums.h"
#include "ridge/runtime/sum_times_store.h"

namespace ridge::cli {
namespace {

// Takes the first rank's stored times at all ranks, if it has some.
Status TakeStored(Communicator& ranks, SumTimes& times) {
  std::string text;
  if (ranks.rank() == 0) {
    const Result<SumTimes> own = LoadSumTimes(times);
    if (own.ok()) text = SumTimesToJson(*own);
  }
  RIDGE_ASSIGN_OR_RETURN(text, TextOfFirst(ranks, std::move(text)));
  if (text.empty()) return Status();
  RIDGE_ASSIGN_OR_RETURN(SumTimes stored, SumTimesFromJson(text, "the table of rank 0"));
  times.made_at = std::move(stored.made_at);
  times.sums = std::move(stored.sums);
  return Status();
}

// Open MPI first, as `--devices` starts it.
Result<SumTimes> StoredBy(SumTimes key) {
  for (const char* mpi : {"Open MPI", "MPICH"}) {
    key.mpi = mpi;
    Result<SumTimes> stored = LoadSumTimes(key);
    if (stored.ok()) return stored;
  }
  return Status(ErrorCode::kFailed, "no times of sums are stored");
}

}  // namespace

Result<bool> TakeCores(Communicator& ranks, Backend& backend) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<int> first, FirstCoreOfRank(ranks, backend.threads()));
  if (first) cpu::PinTeam(backend.threads(), *first);
  return first.has_value();
}

Result<SumTimes> SumTimesKey(MpiCommunicator& ranks, const std::string& device) {
  SumTimes key;
  key.device = device;
  key.mpi = ranks.library();
  key.ranks = ranks.size();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int> first, FirstRankOfMachines(ranks));
  key.machines = std::ssize(first);
  key.join_bytes = ranks.join_bytes();
  key.made_at = UtcText(WallSeconds());
  return key;
}

Result<SumTimes> TakeSumTimes(MpiCommunicator& ranks, const std::string& device, Backend& backend,
                              const std::function<void(const std::string&)>& say) {
  RIDGE_ASSIGN_OR_RETURN(SumTimes times, SumTimesKey(ranks, device));
  RIDGE_RETURN_IF_ERROR(TakeStored(ranks, times));
  if (times.known()) return times;
  say(fmt::format("no times of sums over {} by {} yet: measuring them",
                  FormatCountOf(times.ranks, "rank"), times.mpi));
  const int64_t before = ReadProcessMemory().resident_bytes;
  // The training is not pinned: where other programs run, its ranks must get out of their way.
  const bool on_host = !backend.device().used_bytes();
  bool pinned = false;
  if (on_host) {
    RIDGE_ASSIGN_OR_RETURN(pinned, TakeCores(ranks, backend));
  }
  RIDGE_ASSIGN_OR_RETURN(times.sums, TimeSums(ranks, backend, backend.threads(), {}));
  if (pinned) cpu::UnpinTeam(backend.threads());
  times.join_bytes += std::max<int64_t>(0, ReadProcessMemory().resident_bytes - before);
  if (ranks.rank() == 0) (void)SaveSumTimes(times);  // if it fails, the next job measures
  return times;
}

Result<SumTimes> PlannedSumTimes(int64_t ranks, const std::string& device, Backend& backend,
                                 const std::function<void(const std::string&)>& say) {
  SumTimes key;
  key.device = device;
  key.ranks = ranks;
  Result<SumTimes> stored = StoredBy(key);
  if (stored.ok()) return stored;
  if (backend.device().used_bytes()) {
    return Status(ErrorCode::kUnavailable,
                  fmt::format("{} of this kind have not exchanged here yet. hint: ridge train "
                              "--device cuda --devices {} measures them",
                              FormatCountOf(ranks, "GPU"), ranks));
  }
  say(fmt::format("no times of sums over {} yet: measuring them", FormatCountOf(ranks, "rank")));
  RIDGE_RETURN_IF_ERROR(
      OutputOfChild({"bench", "collective", "--quick", "--devices", std::to_string(ranks),
                     "--threads", std::to_string(backend.threads())})
          .status());
  return StoredBy(key);
}

}  // namespace ridge::cli
