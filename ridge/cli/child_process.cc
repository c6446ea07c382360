#include "ridge/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "ridge/core/threads.h"

namespace ridge::cli {
namespace {

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

// Calls nothing that allocates: other threads of the parent may have held the heap's lock.
[[noreturn]] void BecomeSelf(char* const* argv, int out) {
  UnpinThread();
  if (out != STDOUT_FILENO) dup2(out, STDOUT_FILENO);
  execv("/proc/self/exe", argv);
  _exit(127);
}

// For execv; points into `words`.
std::vector<char*> ArgumentsOf(const std::vector<std::string>& words) {
  static char name[] = "ridge";
  std::vector<char*> argv = {name};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

int WaitFor(pid_t child) {
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return state;
}

volatile pid_t running_child = 0;

void PassOn(int signal) {
  if (signal == SIGTERM && running_child > 0) kill(running_child, signal);
}

// Handlers, which exec removes, unlike ignored signals.
class SignalsForChild {
 public:
  SignalsForChild() {
    struct sigaction action {};
    action.sa_handler = PassOn;
    sigaction(SIGTERM, &action, &term_);
    sigaction(SIGINT, &action, &int_);
  }
  ~SignalsForChild() {
    sigaction(SIGTERM, &term_, nullptr);
    sigaction(SIGINT, &int_, nullptr);
  }
  SignalsForChild(const SignalsForChild&) = delete;
  SignalsForChild& operator=(const SignalsForChild&) = delete;

 private:
  struct sigaction term_ {
  }, int_{};
};

}  // namespace

Result<std::string> OutputOfChild(const std::vector<std::string>& words) {
  const std::vector<char*> argv = ArgumentsOf(words);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status(ErrorCode::kUnavailable, "no pipe can be made");
  const pid_t child = fork();
  if (child == 0) BecomeSelf(argv.data(), ends[1]);
  close(ends[1]);
  std::string text = child < 0 ? "" : ReadAll(ends[0]);
  close(ends[0]);
  if (child < 0) return Status(ErrorCode::kUnavailable, "no process can be started");
  const int state = WaitFor(child);
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return text;
  return Status(ErrorCode::kFailed, fmt::format("`ridge {}` failed", fmt::join(words, " ")));
}

int ExitCodeIn(int state) { return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state); }

Result<int> ExitCodeOfChild(const std::vector<std::string>& words) {
  const std::vector<char*> argv = ArgumentsOf(words);
  const SignalsForChild signals;
  const pid_t child = fork();
  if (child == 0) BecomeSelf(argv.data(), STDOUT_FILENO);
  if (child < 0) return Status(ErrorCode::kUnavailable, "no process can be started");
  running_child = child;
  const int state = WaitFor(child);
  running_child = 0;
  return ExitCodeIn(state);
}

}  // namespace ridge::cli
