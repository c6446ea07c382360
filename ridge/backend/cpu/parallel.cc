#include "ridge/backend/cpu/parallel.h"

#include <fmt/format.h>

#include <cstdlib>

#include "ridge/backend/cpu/pin_team.h"
#include "ridge/core/threads.h"

namespace ridge::cpu {
namespace {

// Members of the team that a region gets; fewer than asked for when the runtime has no more.
int TeamMembers() {
  int members = 0;
#pragma omp parallel
  {
#pragma omp single
    members = omp_get_num_threads();
  }
  return members;
}

bool UserBindsThreads() {
  return std::getenv("OMP_PROC_BIND") != nullptr || omp_get_proc_bind() != omp_proc_bind_false;
}

}  // namespace

Status MakeTeam(int threads) {
  omp_set_dynamic(0);            // OMP_DYNAMIC: a smaller team where the machine is busy
  omp_set_max_active_levels(1);  // OMP_MAX_ACTIVE_LEVELS=0: no team at all
  if (threads < 2) return Status();
  RIDGE_RETURN_IF_ERROR(CheckThreadLimit("threads", threads));
  const TeamSize team(threads);
  if (const int members = TeamMembers(); members != threads) {
    return Status(ErrorCode::kDevice,
                  fmt::format("OpenMP gives a team of {} thread{} where {} were asked for. hint: "
                              "--threads {}",
                              members, members == 1 ? "" : "s", threads, members));
  }
  if (threads != AllowedCores() || UserBindsThreads()) return Status();
#pragma omp parallel
  PinThread(omp_get_thread_num());
  return Status();
}

void PinTeam(int threads, int first_core) {
  if (UserBindsThreads()) return;
  const TeamSize team(threads);
#pragma omp parallel
  PinThread(first_core + omp_get_thread_num());
}

void UnpinTeam(int threads) {
  const TeamSize team(threads);
#pragma omp parallel
  UnpinThread();
}

}  // namespace ridge::cpu
