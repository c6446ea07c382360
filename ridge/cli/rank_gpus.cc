#include "ridge/cli/rank_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/backend/cuda/gpus.h"
#include "ridge/backend/cuda/nccl/nccl.h"
#include "ridge/dist/agreement.h"
#include "ridge/dist/core_share.h"
#include "ridge/dist/gather.h"
#include "ridge/runtime/nccl_ranks.h"

namespace ridge::cli {
namespace {

using Uuid = std::array<char, 64>;

// NCCL would hang, and each would plan with memory that the other takes.
Status CheckOwnGpus(Communicator& ranks, const std::string& uuid) {
  Uuid mine{};
  uuid.copy(mine.data(), mine.size() - 1);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Uuid> all, GatherFromAll(ranks, mine));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto first = std::find(all.begin(), all.end(), all[rank]) - all.begin();
    if (first == static_cast<std::ptrdiff_t>(rank)) continue;
    return Status(ErrorCode::kDevice,
                  fmt::format("ranks {} and {} have one GPU, {}. hint: as many --devices as GPUs, "
                              "and --device cuda without a number",
                              first, rank, all[rank].data()));
  }
  return Status();
}

// The same library at all ranks; none where one of them has none, and why.
Result<std::optional<cuda::Nccl>> OpenNccl(Communicator& ranks, std::string& missing) {
  Result<cuda::Nccl> own = cuda::Nccl::Open(cuda::SearchForToolkit());
  if (!own.ok() && own.status().code() != ErrorCode::kUnsupported) return own.status();
  RIDGE_ASSIGN_OR_RETURN(const bool lacks, Agreement(&ranks).Any(!own.ok()));
  if (!lacks) return {std::move(*own)};
  missing = own.ok() ? "another rank has no NCCL" : own.status().message();
  return std::optional<cuda::Nccl>();
}

Result<cuda::NcclId> IdOfGroup(Communicator& ranks, const cuda::Nccl& nccl) {
  cuda::NcclId id{};
  Status made;
  if (ranks.rank() == 0) {
    const Result<cuda::NcclId> own = nccl.MakeId();
    if (own.ok()) id = *own;
    made = own.status();
  }
  RIDGE_RETURN_IF_ERROR(Agreement(&ranks).ShareFailure(made));
  RIDGE_RETURN_IF_ERROR(made);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<cuda::NcclId> all, GatherFromAll(ranks, id));
  return all.front();
}

// What NCCL took is the runtime's from now on.
Status CountNccl(cuda::CudaDevice& device, OpenedMachine& opened) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t free, device.FreeBytes());
  opened.machine.profile.runtime_bytes = device.gpu().memory_bytes - free;
  if (opened.bytes != nullptr)
    opened.bytes->bytes().used.context = opened.machine.profile.runtime_bytes;
  return Status();
}

}  // namespace

Result<std::string> GpuOfRank(Communicator& ranks, const std::vector<int64_t>& listed) {
  if (std::ssize(listed) == ranks.size())
    return fmt::format("cuda:{}", listed[static_cast<size_t>(ranks.rank())]);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int> first, FirstRankOfMachines(ranks));
  const int own = *(std::upper_bound(first.begin(), first.end(), ranks.rank()) - 1);
  RIDGE_ASSIGN_OR_RETURN(const cuda::Driver driver, cuda::LoadDriver());
  RIDGE_RETURN_IF_ERROR(driver.Initialize());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<cuda::GpuFacts> gpus, cuda::ListGpus(driver));
  const auto count = std::max<int64_t>(1, std::ssize(gpus));
  return fmt::format("cuda:{}", (ranks.rank() - own) % count);
}

Status JoinGpus(Communicator& ranks, const std::function<void(const std::string&)>& say,
                OpenedMachine& opened) {
  auto& device = static_cast<cuda::CudaDevice&>(*opened.device);
  RIDGE_RETURN_IF_ERROR(CheckOwnGpus(ranks, device.gpu().uuid));
  std::string missing;
  RIDGE_ASSIGN_OR_RETURN(const std::optional<cuda::Nccl> nccl, OpenNccl(ranks, missing));
  if (!nccl) {
    say(fmt::format("ranks exchange through the hosts' memory: {}", missing));
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(const cuda::NcclId id, IdOfGroup(ranks, *nccl));
  ranks.Name("join NCCL");
  ranks.Enter(0);
  Result<std::unique_ptr<cuda::NcclGroup>> group =
      cuda::NcclGroup::Join(*nccl, device, id, ranks.rank(), ranks.size());
  ranks.Leave();
  RIDGE_RETURN_IF_ERROR(group.status());
  say(fmt::format("ranks exchange by NCCL {} ({})", nccl->version, nccl->path));
  opened.gpu_ranks = RanksOfGroup(ranks, std::move(*group), device.stream(0));
  ranks.SetOfDeviceMemory(opened.gpu_ranks.get());
  return CountNccl(device, opened);
}

}  // namespace ridge::cli
