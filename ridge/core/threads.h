// How many cores and how much memory this process may use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// The smallest of: cores in the affinity mask, the container's CPU quota (cgroup v1 or v2, rounded
// up), OMP_NUM_THREADS when it is a positive number, and OMP_THREAD_LIMIT.  At least 1.
int AvailableThreads();

// Fails with kInvalidArgument when OMP_THREAD_LIMIT allows fewer; `what` names the number: "NAME is
// 2; ...".
Status CheckThreadLimit(const std::string& what, int64_t threads);

// Cores in the affinity mask that the process had when this file was first asked for anything: a
// thread that was pinned since then does not change the answer.
int AllowedCores();
// The numbers of the first `count` of them, or of all when there are fewer: where a pinned team of
// so many threads runs.
std::vector<int> AllowedCpus(int count);
// The calling thread runs on the `index`-th allowed core only (index < AllowedCores()), or on all
// of them again.  Threads inherit the mask of the one that makes them, so those for input and
// output must ask for all.  Where the system refuses, nothing changes.
void PinThread(int index);
void UnpinThread();

// Seconds since the machine's start that cores in that mask were at work, for any process or for
// another machine on the same host; ticks of 10 ms.  0 where the system does not tell.
double BusySeconds();

// Bytes this process may hold, with those that it holds: the smaller of what the container's limit
// leaves and available memory.  Pages of files count as free: the kernel gives them back before it
// refuses memory; of the program's own file all but what a step uses.  `system` is the prefix of
// /proc and /sys, for tests.
int64_t AvailableMemoryBytes(const std::string& system = "");

}  // namespace ridge
