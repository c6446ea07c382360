#include "ridge/backend/cpu/parallel.h"

#include <cstdlib>

#include "ridge/core/threads.h"

namespace ridge::cpu {

void PinTeam(int threads) {
  if (threads < 2 || threads != AllowedCores() || std::getenv("OMP_PROC_BIND") != nullptr) return;
  const TeamSize team(threads);
#pragma omp parallel
  PinThread(omp_get_thread_num());
}

}  // namespace ridge::cpu
