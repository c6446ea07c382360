// Huge pages only where the arena is large: they make the first touch five times faster, but would
// round a small arena up to 2 MiB and so break the promise on bytes.
#include "ridge/runtime/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;
constexpr int64_t kHugePagesFrom = 64 * kHugePage;

int64_t PageBytes() { return sysconf(_SC_PAGESIZE); }

Status CannotMap(int64_t bytes) {
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("cannot map an arena of {} bytes: {}", bytes, std::strerror(errno)));
}

}  // namespace

// Guard pages on both sides keep the system from merging the arena with a neighbour mapping, so
// that its resident pages can be counted; they also stop a kernel that writes past the end.
Result<Arena> Arena::Map(int64_t bytes) {
  const int64_t page = PageBytes();
  const int64_t mapped = std::max(RoundUp(bytes, page), page);
  void* whole = ::mmap(nullptr, static_cast<size_t>(mapped + 2 * page), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return CannotMap(bytes);
  Arena arena(static_cast<std::byte*>(whole) + page, mapped);
  if (::mprotect(arena.data_, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE) != 0)
    return CannotMap(bytes);
  if (mapped >= kHugePagesFrom) ::madvise(arena.data_, static_cast<size_t>(mapped), MADV_HUGEPAGE);
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  const int64_t page = PageBytes();
  ::munmap(data_ - page, static_cast<size_t>(bytes_ + 2 * page));
}

// Huge pages are dealt to the parts in turn: contiguous parts would take unequal time where one
// thread starts later.
void Arena::Touch(int part, int parts) {
  const int64_t page = PageBytes();
  for (int64_t begin = part * kHugePage; begin < bytes_; begin += parts * kHugePage) {
    const int64_t end = std::min(begin + kHugePage, bytes_);
    for (int64_t at = begin; at < end; at += page)
      *const_cast<volatile std::byte*>(data_ + at) = std::byte{0};
  }
}

// From smaps, not mincore: that counts the shared page of zeros behind memory that was only read.
int64_t Arena::resident_bytes() const {
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t end = begin + static_cast<uintptr_t>(bytes_);
  bool inside = false;
  int64_t resident = 0;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t from = 0, to = 0;
    long kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) inside = from >= begin && to <= end;
    if (inside && std::sscanf(line.c_str(), "Rss: %ld kB", &kib) == 1) resident += kib * 1024;
  }
  return resident;
}

}  // namespace ridge
