// Huge pages only where the arena is large: they make the first touch five times faster, but would
// round a small arena up to 2 MiB and so break the promise on bytes.
#include "ridge/backend/cpu/host_memory.h"

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

#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;
constexpr int64_t kHugePagesFrom = 64 * kHugePage;

int64_t PageBytes() { return sysconf(_SC_PAGESIZE); }

Status CannotMap(int64_t bytes) {
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("cannot map an arena of {} bytes: {}", bytes, std::strerror(errno)));
}

}  // namespace

// Guard pages on both sides keep the system from merging the memory with a neighbour mapping, so
// that its resident pages can be counted; they also stop a kernel that writes past the end.
Result<std::unique_ptr<Memory>> HostMemory::Map(int64_t bytes, int threads) {
  const int64_t page = PageBytes();
  const int64_t mapped = std::max(RoundUp(bytes, page), page);
  void* whole = ::mmap(nullptr, static_cast<size_t>(mapped + 2 * page), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return CannotMap(bytes);
  std::byte* data = static_cast<std::byte*>(whole) + page;
  std::unique_ptr<Memory> memory(new HostMemory(data, mapped, threads));
  if (::mprotect(data, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE) != 0)
    return CannotMap(bytes);
  if (mapped >= kHugePagesFrom) ::madvise(data, static_cast<size_t>(mapped), MADV_HUGEPAGE);
  return memory;
}

HostMemory::HostMemory(std::byte* data, int64_t bytes, int threads) : threads_(threads) {
  data_ = data;
  bytes_ = bytes;
}

HostMemory::~HostMemory() {
  const int64_t page = PageBytes();
  ::munmap(data_ - page, static_cast<size_t>(bytes_ + 2 * page));
}

void HostMemory::MakeResident() {
  ForEachPart(threads_, [&](int part) { Touch(part, threads_); });
}

// Huge pages are assigned to the parts in turn: contiguous parts would take unequal time where one
// thread starts later.
void HostMemory::Touch(int part, int parts) {
  const int64_t page = PageBytes();
  for (int64_t begin = part * kHugePage; begin < bytes_; begin += parts * kHugePage) {
    const int64_t end = std::min(begin + kHugePage, bytes_);
    for (int64_t at = begin; at < end; at += page)
      *const_cast<volatile std::byte*>(data_ + at) = std::byte{0};
  }
}

// From smaps, not mincore: that counts the shared page of zeros behind memory that was only read.
int64_t HostMemory::resident_bytes() const {
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

}  // namespace ridge::cpu
