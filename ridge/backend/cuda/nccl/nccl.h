// Nccl: libnccl.so.2, opened when several ranks have a GPU each, and a group of such ranks.
//
// It moves bytes and adds nothing, so the bits of a sum depend neither on its rings nor on its
// version.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/library_search.h"
#include "ridge/backend/cuda/nccl/nccl_abi.h"

namespace ridge::cuda {

// Status of a call: RIDGE_NCCL(library, GroupStart).
#define RIDGE_NCCL(library, name, ...) (library).Check((library).name(__VA_ARGS__), "nccl" #name)

struct Nccl : NcclTable {
  std::string path;     // of the file
  std::string version;  // "2.28.3"

  // Fails with kUnsupported: it is not found, or lacks a function.
  static Result<Nccl> Open(const LibrarySearch& search);
  // Of a group that nobody has joined yet.  Fails with kDevice.
  Result<NcclId> MakeId() const;
  // "ncclSend failed: unhandled cuda error (1)"; ok for kSuccess.  Of kDevice.
  Status Check(NcclCode code, const char* function) const;
};

// This rank's place in a group.  Not thread-safe.
class NcclGroup {
 public:
  // Called by all ranks of the group, each with a GPU of its own.  Returns when all have; what the
  // library needs of the GPUs is allocated then.  `device` outlives the group.  Fails with kDevice.
  static Result<std::unique_ptr<NcclGroup>> Join(const Nccl& library, CudaDevice& device,
                                                 const NcclId& id, int rank, int ranks);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return ranks_; }
  // Payload since it was made.
  int64_t sent_bytes() const { return sent_bytes_; }

  // Enqueues on the main stream: sends[r] to rank r, and into receives[r] what rank r sends here,
  // all of it in the GPUs' memory; entry rank() is ignored.  Called by all ranks in one order.
  // Allocates nothing of ours.  Fails with kDevice.
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives);
  // Ends the exchanges that wait for another rank.  The group is of no use then.
  void Abort();

 private:
  NcclGroup(const Nccl& library, CudaDevice& device, int rank, int ranks)
      : library_(library), device_(device), rank_(rank), ranks_(ranks) {}
  Status WarmUp();
  Status Post(const std::vector<std::span<const std::byte>>& sends,
              const std::vector<std::span<std::byte>>& receives);

  const Nccl library_;
  CudaDevice& device_;
  const int rank_, ranks_;
  NcclHandle handle_ = nullptr;
  int64_t sent_bytes_ = 0;
};

}  // namespace ridge::cuda
