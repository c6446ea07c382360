// Pins the team of a process that shares a machine with others of its job, while something is
// measured (MakeTeam pins one that has the machine for itself).
#pragma once

namespace ridge::cpu {

// Thread i of the calling thread's team runs on the allowed core first_core + i only.  The user's
// OMP_PROC_BIND wins.  REQUIRES: MakeTeam(threads); first_core + threads <= AllowedCores().
void PinTeam(int threads, int first_core);

// The threads run on all allowed cores again.
void UnpinTeam(int threads);

}  // namespace ridge::cpu
