#include "ridge/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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
  dup2(out, STDOUT_FILENO);
  execv("/proc/self/exe", argv);
  _exit(127);
}

}  // namespace

Result<std::string> OutputOfChild(const std::vector<std::string>& words) {
  static char name[] = "ridge";
  std::vector<char*> argv = {name};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status(ErrorCode::kUnavailable, "no pipe can be made");
  const pid_t child = fork();
  if (child == 0) BecomeSelf(argv.data(), ends[1]);
  close(ends[1]);
  std::string text = child < 0 ? "" : ReadAll(ends[0]);
  close(ends[0]);
  if (child < 0) return Status(ErrorCode::kUnavailable, "no process can be started");
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return text;
  return Status(ErrorCode::kFailed, fmt::format("`ridge {}` failed", fmt::join(words, " ")));
}

}  // namespace ridge::cli
