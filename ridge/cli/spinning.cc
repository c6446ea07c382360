// How long a thread of the team spins at a barrier before it sleeps.
//
// libgomp spins for 3 ms.  Where other programs have the cores, the thread that it waits for does
// not run meanwhile, and the program pays twice.  libgomp has no function that sets the limit; its
// constructor reads GOMP_SPINCOUNT.  So the program starts itself once more with that variable,
// before any library is initialized.  docs/design/0025-spinning.md has the measurements.
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <string_view>

namespace {

constexpr size_t kMostVariables = 4096;
char limit[] = "GOMP_SPINCOUNT=10000";  // 130 us on a Zen 5

// Called before libraries are initialized: nothing but system calls is safe.
void LimitSpinning(int, char** argv, char** envp) {
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

[[gnu::section(".preinit_array"), gnu::used]] void (*const run_first)(int, char**,
                                                                      char**) = LimitSpinning;

}  // namespace
