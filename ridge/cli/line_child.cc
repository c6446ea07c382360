// One socket is the child's input and output: a write to a child that has gone gives an error there
// and no signal.
#include "ridge/cli/line_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "ridge/core/process.h"

namespace ridge::cli {
namespace {

constexpr size_t kMostBytes = 1 << 16;  // of a line

Status Gone(const std::string& why) { return Status(ErrorCode::kUnavailable, why); }

// Calls nothing that allocates: other threads of the parent may have held the heap's lock.
[[noreturn]] void Become(char* const* argv, int wire, int errors) {
  dup2(wire, STDIN_FILENO);
  dup2(wire, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

// The last line of a file that is not empty.
std::string LastLine(int file) {
  std::array<char, 4096> buffer;
  const off_t size = lseek(file, 0, SEEK_END);
  const auto room = static_cast<off_t>(buffer.size());
  const ssize_t got = pread(file, buffer.data(), buffer.size(), size > room ? size - room : 0);
  std::string text(buffer.data(), static_cast<size_t>(std::max<ssize_t>(0, got)));
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// Of a child that closed its output: its state at the end, to which it is brought where it goes on.
int WaitBriefly(pid_t child) {
  constexpr int kTries = 100;
  int state = 0;
  for (int tries = 0; tries < kTries; ++tries) {
    if (waitpid(child, &state, WNOHANG) == child) return state;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return state;
}

}  // namespace

Status LineChild::Start(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Gone("no socket can be made");
  wire_ = ends[0];
  errors_ = memfd_create("errors", MFD_CLOEXEC);
  pid_ = errors_ < 0 ? -1 : fork();
  if (pid_ == 0) Become(argv.data(), ends[1], errors_);
  close(ends[1]);
  return pid_ < 0 ? Gone("no process can be started") : Status();
}

Status LineChild::Write(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t put = send(wire_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Ended();
    sent += static_cast<size_t>(put);
  }
  return Status();
}

Result<std::string> LineChild::Read(double seconds) {
  const double end_s = MonotonicSeconds() + seconds;
  while (unread_.find('\n') == std::string::npos) {
    const int left_ms = static_cast<int>(1e3 * (end_s - MonotonicSeconds()));
    pollfd wire = {wire_, POLLIN, 0};
    const int ready = left_ms <= 0 ? 0 : poll(&wire, 1, left_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Gone(fmt::format("gave no answer within {:g} s", seconds));
    if (unread_.size() > kMostBytes) return Gone("gave a line without an end");
    std::array<char, 4096> buffer;
    const ssize_t got = recv(wire_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    unread_.append(buffer.data(), static_cast<size_t>(got));
  }
  const size_t at = unread_.find('\n');
  std::string line = unread_.substr(0, at);
  unread_.erase(0, at + 1);
  return line;
}

Status LineChild::Ended() {
  const int state = WaitBriefly(pid_);
  pid_ = -1;
  const std::string said = LastLine(errors_);
  if (!said.empty()) return Gone(fmt::format("ended: {}", said));
  if (WIFEXITED(state)) return Gone(fmt::format("ended with {}", WEXITSTATUS(state)));
  return Gone(fmt::format("ended by signal {}", WTERMSIG(state)));
}

void LineChild::End() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int file : {wire_, errors_}) {
    if (file >= 0) close(file);
  }
}

}  // namespace ridge::cli
