// How the program shares the cores with others: a thread of the team that waits at a barrier sleeps
// soon, and a thread that wakes up runs soon.
//
// libgomp spins for 3 ms.  Where other programs have the cores, the thread that it waits for does
// not run meanwhile, and the program pays twice.  libgomp has no function that sets the limit; its
// constructor reads GOMP_SPINCOUNT.  So the program starts itself once more with that variable,
// before any library is initialized.  A short time slice is Linux's sign of a task that wants
// little at a time but soon: it preempts those with longer ones; its share of the core stays.
// docs/design/0025-core-sharing.md has the measurements.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

constexpr size_t kMostVariables = 4096;
char limit[] = "GOMP_SPINCOUNT=10000";  // 130 us on a Zen 5

// The kernel's struct of sched_setattr(2), first version.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // of a task of the default policy: its time slice, from Linux 6.12 on
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

// Threads and the program that execve starts inherit it.  Older systems ignore it.
void ShortenTimeSlice() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = 200'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Returns when the program runs with the limit already, or with the user's.
void LimitSpinning(char** argv, char** envp) {
  static std::array<char*, kMostVariables + 2> variables;
  static std::array<char, PATH_MAX> path;  // as /proc/self/exe the process would be called "exe"
  size_t count = 0;
  for (; envp[count] != nullptr; ++count) {
    const std::string_view variable = envp[count];
    const bool set_by_user =
        variable.starts_with("GOMP_SPINCOUNT=") || variable.starts_with("OMP_WAIT_POLICY=");
    if (set_by_user || count == kMostVariables) return;
    variables[count] = envp[count];
  }
  variables[count] = limit;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length > 0) execve(path.data(), argv, variables.data());
}

// Called before libraries are initialized: nothing but system calls is safe.
void ShareCores(int, char** argv, char** envp) {
  ShortenTimeSlice();
  LimitSpinning(argv, envp);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const run_first)(int, char**,
                                                                      char**) = ShareCores;

}  // namespace
