#include "ridge/backend/cuda/nccl/nccl.h"

#include <fmt/format.h>

#include <utility>

namespace ridge::cuda {
namespace {

constexpr char kWheel[] = "nvidia-nccl-cu13";

// The name of a function that is not there; nullptr: all are.
const char* FindAll(void* library, NcclTable& table) {
  const char* missing = nullptr;
#define RIDGE_NCCL_FIND(name, ...)                                            \
  if (!FindFunction(library, "nccl" #name, table.name) && missing == nullptr) \
    missing = "nccl" #name;
  RIDGE_NCCL_FUNCTIONS(RIDGE_NCCL_FIND)
  RIDGE_NCCL_FIND(GetErrorString)
#undef RIDGE_NCCL_FIND
  return missing;
}

}  // namespace

Result<Nccl> Nccl::Open(const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(const OpenLibrary library,
                         OpenOptionalLibrary(search, "NCCL", "libnccl.so.2", kWheel));
  Nccl nccl;
  nccl.path = library.path;
  if (const char* missing = FindAll(library.handle, nccl); missing != nullptr)
    return LacksFunction(nccl.path, missing, kWheel);
  int number = 0;
  RIDGE_RETURN_IF_ERROR(RIDGE_NCCL(nccl, GetVersion, &number));
  nccl.version = VersionOfNumber(number);
  return nccl;
}

Result<NcclId> Nccl::MakeId() const {
  NcclId id{};
  RIDGE_RETURN_IF_ERROR(RIDGE_NCCL(*this, GetUniqueId, &id));
  return id;
}

Status Nccl::Check(NcclCode code, const char* function) const {
  if (code == NcclCode::kSuccess) return Status();
  return Status(ErrorCode::kDevice, fmt::format("{} failed: {} ({})", function,
                                                GetErrorString(code), static_cast<int>(code)));
}

Result<std::unique_ptr<NcclGroup>> NcclGroup::Join(const Nccl& library, CudaDevice& device,
                                                   const NcclId& id, int rank, int ranks) {
  std::unique_ptr<NcclGroup> group(new NcclGroup(library, device, rank, ranks));
  RIDGE_RETURN_IF_ERROR(RIDGE_NCCL(library, CommInitRank, &group->handle_, ranks, id, rank));
  RIDGE_RETURN_IF_ERROR(group->WarmUp());
  return group;
}

NcclGroup::~NcclGroup() {
  if (handle_ == nullptr) return;
  (void)device_.stream(0).Synchronize();
  (void)library_.CommDestroy(handle_);
}

void NcclGroup::Abort() {
  if (handle_ != nullptr) (void)library_.CommAbort(std::exchange(handle_, nullptr));
}

// The library connects two ranks, and allocates for it, when they first meet.
Status NcclGroup::WarmUp() {
  constexpr int64_t kBytes = int64_t{1} << 20;
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory,
                         device_.Allocate(kBytes * (ranks_ + 1)));
  const auto count = static_cast<size_t>(ranks_);
  const std::vector<std::span<const std::byte>> sends(
      count, std::span<const std::byte>(memory->data(), static_cast<size_t>(kBytes)));
  std::vector<std::span<std::byte>> receives;
  for (int rank = 0; rank < ranks_; ++rank)
    receives.emplace_back(memory->data() + (rank + 1) * kBytes, static_cast<size_t>(kBytes));
  RIDGE_RETURN_IF_ERROR(Exchange(sends, receives));
  RIDGE_RETURN_IF_ERROR(device_.stream(0).Synchronize());
  sent_bytes_ = 0;
  return Status();
}

Status NcclGroup::Exchange(const std::vector<std::span<const std::byte>>& sends,
                           const std::vector<std::span<std::byte>>& receives) {
  RIDGE_CHECK(handle_ != nullptr, "a group that was aborted exchanges nothing");
  RIDGE_RETURN_IF_ERROR(RIDGE_NCCL(library_, GroupStart));
  const Status posted = Post(sends, receives);
  const Status ended = RIDGE_NCCL(library_, GroupEnd);
  return posted.ok() ? ended : posted;
}

Status NcclGroup::Post(const std::vector<std::span<const std::byte>>& sends,
                       const std::vector<std::span<std::byte>>& receives) {
  const StreamHandle stream = static_cast<CudaStream&>(device_.stream(0)).handle();
  for (int peer = 0; peer < ranks_; ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (peer == rank_) continue;
    if (!sends[at].empty()) {
      RIDGE_RETURN_IF_ERROR(RIDGE_NCCL(library_, Send, sends[at].data(), sends[at].size(),
                                       kNcclBytes, peer, handle_, stream));
      sent_bytes_ += std::ssize(sends[at]);
    }
    if (!receives[at].empty()) {
      RIDGE_RETURN_IF_ERROR(RIDGE_NCCL(library_, Recv, receives[at].data(), receives[at].size(),
                                       kNcclBytes, peer, handle_, stream));
    }
  }
  return Status();
}

}  // namespace ridge::cuda
