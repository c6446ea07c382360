// How many cores and how much memory this process may use.
#pragma once
#include <cstdint>

namespace ridge {

// The smallest of: cores in the affinity mask, the container's CPU quota (cgroup v1 or v2, rounded
// up), and OMP_NUM_THREADS when it is a positive number.  At least 1.
int AvailableThreads();

// Cores in the affinity mask that the process had when this file was first asked for anything: a
// thread that was pinned since then does not change the answer.
int AllowedCores();
// The calling thread runs on the `index`-th allowed core only (index < AllowedCores()), or on all
// of them again.  Threads inherit the mask of the one that makes them, so those for input and
// output must ask for all.  Where the system refuses, nothing changes.
void PinThread(int index);
void UnpinThread();

// Bytes this process may use: the smaller of the container's limit and available memory.
int64_t AvailableMemoryBytes();

}  // namespace ridge
