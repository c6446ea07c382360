// flock, not fcntl: the lock belongs to the open file, so two runs of one process exclude each
// other as well, and closing another descriptor of the file does not let go of it.
#include "ridge/core/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace ridge {
namespace {

std::string ThisMachine() {
  char name[256] = "";
  (void)::gethostname(name, sizeof(name) - 1);
  return name;
}

// "PROCESS MACHINE\n"; older files name no machine.
LockHolder ReadHolder(int fd) {
  char text[512];
  const ssize_t bytes = ::pread(fd, text, sizeof(text), 0);
  LockHolder holder;
  if (bytes <= 0) return holder;
  const char* const end = text + bytes;
  const char* at = std::from_chars(text, end, holder.process).ptr;
  if (at != end && *at == ' ') holder.machine.assign(at + 1, std::find(at + 1, end, '\n'));
  if (holder.machine == ThisMachine()) holder.machine.clear();
  return holder;
}

// For whoever is refused; the lock holds without it.
void WriteHolder(int fd) {
  const std::string text = fmt::format("{} {}\n", ::getpid(), ThisMachine());
  if (::ftruncate(fd, 0) == 0) (void)!::pwrite(fd, text.data(), text.size(), 0);
}

// Whether the lock could be had.  Holder() has it for a moment, so that is waited for.
bool Flock(int fd, int operation) {
  constexpr int kAttempts = 5, kPause_us = 2000;
  for (int attempt = 1;; ++attempt) {
    if (::flock(fd, operation | LOCK_NB) == 0) return true;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || attempt == kAttempts) return false;
    ::usleep(kPause_us);
  }
}

}  // namespace

std::string HolderText(const LockHolder& holder) {
  if (holder.process <= 0) return "another process";
  const std::string text = fmt::format("process {}", holder.process);
  return holder.machine.empty() ? text : text + " on " + holder.machine;
}

std::optional<int64_t> FileLock::Holder(const std::string& path) {
  const FileLock file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd_ < 0 || Flock(file.fd_, LOCK_SH) || errno != EWOULDBLOCK) return std::nullopt;
  return ReadHolder(file.fd_).process;
}

Result<std::optional<FileLock>> FileLock::Take(const std::string& path, LockHolder& holder) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return Status(ErrorCode::kUnavailable,
                  fmt::format("{}: cannot create: {}", path, std::strerror(errno)));
  }
  FileLock lock(fd);
  if (Flock(fd, LOCK_EX)) {
    WriteHolder(fd);
  } else if (errno == EWOULDBLOCK) {
    holder = ReadHolder(fd);
    return {std::optional<FileLock>()};
  }
  return {std::optional<FileLock>(std::move(lock))};
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ridge
