#include "tests/fake_cuda/fake_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>

namespace ridge::fake_cuda {
namespace {

using cuda::AllocationHandle;
using cuda::DevicePtr;

// A memfd; gives its bytes back to the GPU, if they are one's, when the last mapping or handle
// goes.
struct Chunk {
  Chunk(Gpu* owner, size_t size) : gpu(owner), bytes(size) {
    if (gpu != nullptr) gpu->used += bytes;
    TheState().Born();
  }
  ~Chunk() {
    ::close(file);
    if (gpu != nullptr) gpu->used -= bytes;
    TheState().Died();
  }
  Gpu* const gpu;
  const size_t bytes;
  int file = -1;
  bool of_node = false;  // of the host, which may follow its addresses
};

struct Mapping {
  size_t bytes;
  std::shared_ptr<Chunk> chunk;
  bool access = false;
};

struct Reservation {
  size_t bytes;
  char* inside;
  std::map<DevicePtr, Mapping> mappings;
  bool whole = false;  // of Allocate()
};

std::map<DevicePtr, Reservation>& Reservations() {
  static std::map<DevicePtr, Reservation> all;
  return all;
}
std::map<AllocationHandle, std::shared_ptr<Chunk>>& Chunks() {
  static std::map<AllocationHandle, std::shared_ptr<Chunk>> all;
  return all;
}

void* Pages(size_t bytes) {
  return ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// The reservation around an address; end() without one.
std::map<DevicePtr, Reservation>::iterator Around(DevicePtr at) {
  auto& all = Reservations();
  auto found = all.upper_bound(at);
  if (found == all.begin()) return all.end();
  --found;
  return at < found->first + found->second.bytes ? found : all.end();
}

char* InsideOf(DevicePtr begin, const Reservation& reservation, DevicePtr at) {
  return reservation.inside + (at - begin);
}

bool Overlaps(const Reservation& reservation, DevicePtr at, size_t bytes) {
  for (const auto& [begin, mapping] : reservation.mappings) {
    if (at < begin + mapping.bytes && begin < at + bytes) return true;
  }
  return false;
}

std::shared_ptr<Chunk> NewChunk(Gpu* gpu, size_t bytes) {
  auto chunk = std::make_shared<Chunk>(gpu, bytes);
  chunk->file = ::memfd_create("fake_cuda", 0);
  if (chunk->file < 0 || ::ftruncate(chunk->file, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* all =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, chunk->file, 0);
  if (all == MAP_FAILED) return nullptr;
  std::memset(all, 0xFF, bytes);
  ::munmap(all, bytes);
  return chunk;
}

// REQUIRES: the memory's lock is held.
DriverCode CreateOf(Gpu* gpu, AllocationHandle* handle, size_t bytes) {
  if (bytes == 0 || bytes % kGranule != 0) return DriverCode::kInvalidValue;
  std::shared_ptr<Chunk> chunk = NewChunk(gpu, bytes);
  if (chunk == nullptr) return DriverCode::kOutOfMemory;
  *handle = reinterpret_cast<AllocationHandle>(chunk.get());
  Chunks()[*handle] = std::move(chunk);
  return DriverCode::kSuccess;
}

}  // namespace

DriverCode Reserve(DevicePtr* at, size_t bytes) {
  if (bytes == 0 || bytes % kGranule != 0) return DriverCode::kInvalidValue;
  void* outside = Pages(bytes);
  void* inside = Pages(bytes);
  if (outside == MAP_FAILED || inside == MAP_FAILED) return DriverCode::kOutOfMemory;
  *at = reinterpret_cast<DevicePtr>(outside);
  const std::lock_guard hold(TheState().memory_lock);
  Reservations()[*at] = {.bytes = bytes, .inside = static_cast<char*>(inside), .mappings = {}};
  TheState().Born();
  return DriverCode::kSuccess;
}

DriverCode Unreserve(DevicePtr at, size_t bytes) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto found = Reservations().find(at);
  if (found == Reservations().end() || found->second.bytes != bytes ||
      !found->second.mappings.empty())
    return DriverCode::kInvalidValue;
  ::munmap(reinterpret_cast<void*>(at), bytes);
  ::munmap(found->second.inside, bytes);
  Reservations().erase(found);
  TheState().Died();
  return DriverCode::kSuccess;
}

DriverCode Create(AllocationHandle* handle, size_t bytes) {
  const std::lock_guard hold(TheState().memory_lock);
  Gpu& gpu = *CurrentGpu();
  if (TheState().InUse(gpu) + bytes > gpu.bytes) return DriverCode::kOutOfMemory;
  return CreateOf(&gpu, handle, bytes);
}

DriverCode CreateOnHost(AllocationHandle* handle, size_t bytes, bool of_node) {
  const std::lock_guard hold(TheState().memory_lock);
  const DriverCode code = CreateOf(nullptr, handle, bytes);
  if (code == DriverCode::kSuccess) Chunks()[*handle]->of_node = of_node;
  return code;
}

DriverCode Release(AllocationHandle handle) {
  const std::lock_guard hold(TheState().memory_lock);
  return Chunks().erase(handle) == 1 ? DriverCode::kSuccess : DriverCode::kInvalidValue;
}

DriverCode Map(DevicePtr at, size_t bytes, AllocationHandle handle) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto around = Around(at);
  const auto chunk = Chunks().find(handle);
  if (around == Reservations().end() || chunk == Chunks().end() || bytes != chunk->second->bytes ||
      at + bytes > around->first + around->second.bytes || Overlaps(around->second, at, bytes))
    return DriverCode::kInvalidValue;
  void* inside = InsideOf(around->first, around->second, at);
  if (::mmap(inside, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, chunk->second->file, 0) ==
      MAP_FAILED)
    return DriverCode::kOutOfMemory;
  around->second.mappings[at] = {.bytes = bytes, .chunk = chunk->second};
  TheState().Born();
  return DriverCode::kSuccess;
}

DriverCode Unmap(DevicePtr at, size_t bytes) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto around = Around(at);
  if (around == Reservations().end()) return DriverCode::kInvalidValue;
  const auto mapping = around->second.mappings.find(at);
  if (mapping == around->second.mappings.end() || mapping->second.bytes != bytes)
    return DriverCode::kInvalidValue;
  void* inside = InsideOf(around->first, around->second, at);
  ::mmap(inside, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (mapping->second.chunk->of_node) {
    ::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  }
  around->second.mappings.erase(mapping);
  TheState().Died();
  return DriverCode::kSuccess;
}

DriverCode AllowAccess(DevicePtr at, size_t bytes) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto around = Around(at);
  if (around == Reservations().end()) return DriverCode::kInvalidValue;
  const auto mapping = around->second.mappings.find(at);
  if (mapping == around->second.mappings.end() || mapping->second.bytes != bytes)
    return DriverCode::kInvalidValue;
  void* inside = InsideOf(around->first, around->second, at);
  if (::mprotect(inside, bytes, PROT_READ | PROT_WRITE) != 0) return DriverCode::kUnknown;
  mapping->second.access = true;
  return DriverCode::kSuccess;
}

DriverCode AllowHostAccess(DevicePtr at, size_t bytes) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto around = Around(at);
  if (around == Reservations().end()) return DriverCode::kInvalidValue;
  const auto mapping = around->second.mappings.find(at);
  if (mapping == around->second.mappings.end() || mapping->second.bytes != bytes ||
      !mapping->second.chunk->of_node)
    return DriverCode::kInvalidValue;
  const int file = mapping->second.chunk->file;
  const void* shown = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, file, 0);
  return shown == MAP_FAILED ? DriverCode::kUnknown : DriverCode::kSuccess;
}

DriverCode Allocate(DevicePtr* at, size_t bytes) {
  const size_t whole = (bytes + kGranule - 1) / kGranule * kGranule;
  if (DriverCode code = Reserve(at, whole); code != DriverCode::kSuccess) return code;
  AllocationHandle handle = 0;
  DriverCode code = Create(&handle, whole);
  if (code == DriverCode::kSuccess) {
    Map(*at, whole, handle);
    AllowAccess(*at, whole);
    Release(handle);
    const std::lock_guard hold(TheState().memory_lock);
    Reservations()[*at].whole = true;
  } else {
    Unreserve(*at, whole);
  }
  return code;
}

DriverCode Free(DevicePtr at) {
  size_t bytes = 0;
  {
    const std::lock_guard hold(TheState().memory_lock);
    const auto found = Reservations().find(at);
    if (found == Reservations().end() || !found->second.whole) return DriverCode::kInvalidValue;
    bytes = found->second.bytes;
  }
  Unmap(at, bytes);
  return Unreserve(at, bytes);
}

void* Inside(DevicePtr at) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto around = Around(at);
  if (around == Reservations().end()) return nullptr;
  return InsideOf(around->first, around->second, at);
}

void* Reach(DevicePtr at, size_t bytes) {
  const std::lock_guard hold(TheState().memory_lock);
  const auto around = Around(at);
  if (around == Reservations().end()) return nullptr;
  for (const auto& [begin, mapping] : around->second.mappings) {
    if (mapping.access && at >= begin && at + bytes <= begin + mapping.bytes)
      return InsideOf(around->first, around->second, at);
  }
  return nullptr;
}

}  // namespace ridge::fake_cuda
