// Huge pages only where the arena is large: they make the first touch five times faster, but would
// round a small arena up to 2 MiB and so break the promise on bytes.
#include "ridge/runtime/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace ridge {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;
constexpr int64_t kHugePagesFrom = 64 * kHugePage;

int64_t PageBytes() { return sysconf(_SC_PAGESIZE); }

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Result<Arena> Arena::Map(int64_t bytes) {
  const int64_t mapped = std::max(RoundUp(bytes, PageBytes()), PageBytes());
  void* data = ::mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return Status(ErrorCode::kOutOfMemory,
                  fmt::format("cannot map an arena of {} bytes: {}", bytes, std::strerror(errno)));
  }
  if (mapped >= kHugePagesFrom) ::madvise(data, static_cast<size_t>(mapped), MADV_HUGEPAGE);
  return Arena(static_cast<std::byte*>(data), mapped);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::~Arena() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

int64_t Arena::resident_bytes() const {
  const int64_t page = PageBytes();
  std::vector<unsigned char> pages(4096);
  int64_t resident = 0;
  for (int64_t at = 0; at < bytes_; at += page * static_cast<int64_t>(pages.size())) {
    const int64_t length = std::min(bytes_ - at, page * static_cast<int64_t>(pages.size()));
    if (::mincore(data_ + at, static_cast<size_t>(length), pages.data()) != 0) return 0;
    const auto end = pages.begin() + length / page;
    resident += page * std::count_if(pages.begin(), end, [](unsigned char p) { return p & 1; });
  }
  return resident;
}

}  // namespace ridge
