#include "ridge/runtime/tree_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/backend/host_kernel.h"
#include "ridge/core/process.h"
#include "ridge/dist/tree_sum.h"

namespace ridge {
namespace {

// Adds the first output to the second, that to the third, and so on.  Only the last one keeps its
// sum: those between are a tile in the cache, since memory is what this takes.
class TreeAddKernel : public HostKernel<TreeAddKernel> {
 public:
  TreeAddKernel(Backend& backend, SumBlock block)
      : device_(backend.device()), threads_(backend.threads()), block_(std::move(block)) {}

  Status Run(const KernelBuffers& buffers) {
    const std::span<void* const> blocks = buffers.outputs;
    if (blocks.size() < 2) return Status();
    device_.ForEachPart(threads_, [&](int part) {
      const ByteRange range = ChunkOf(part, threads_, block_.bytes);
      for (int64_t begin = range.begin; begin < range.end; begin += kTileBytes)
        AddTile(begin, std::min(begin + kTileBytes, range.end), blocks);
    });
    return Status();
  }

 private:
  static constexpr int64_t kTileBytes = int64_t{1} << 13;

  void AddTile(int64_t begin, int64_t end, std::span<void* const> blocks) const {
    alignas(kChunkLine) std::array<std::byte, kTileBytes> tile;
    const auto* sum = static_cast<const std::byte*>(blocks[0]);
    for (size_t i = 1; i < blocks.size(); ++i) {
      auto* own = static_cast<std::byte*>(blocks[i]);
      std::byte* to = i + 1 == blocks.size() ? own : tile.data() - begin;
      AddSums(block_, begin, end, own, sum, to);
      sum = to;
    }
  }

  Device& device_;
  const int threads_;
  const SumBlock block_;
};

class TreeSumKernel : public HostKernel<TreeSumKernel> {
 public:
  TreeSumKernel(Backend& backend, std::unique_ptr<TreeSum> sum, double& spent_s)
      : device_(backend.device()),
        threads_(backend.threads()),
        sum_(std::move(sum)),
        spent_s_(spent_s) {}

  Status Run(const KernelBuffers&) {
    const double begin_s = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(sum_->Send());
    device_.ForEachPart(threads_, [&](int part) { sum_->Combine(part, threads_); });
    RIDGE_RETURN_IF_ERROR(sum_->Gather());
    spent_s_ += MonotonicSeconds() - begin_s;
    return Status();
  }

 private:
  Device& device_;
  const int threads_;
  const std::unique_ptr<TreeSum> sum_;
  double& spent_s_;
};

// Of a plan that is timed without the other ranks.
class NobodyElse : public HostKernel<NobodyElse> {
 public:
  explicit NobodyElse(int ranks) : ranks_(ranks) {}
  Status Run(const KernelBuffers&) {
    return Status(ErrorCode::kUnavailable,
                  fmt::format("a step of {} ranks runs on all of them together", ranks_));
  }

 private:
  const int ranks_;
};

}  // namespace

SumBlock TreeMemory::block() const {
  SumBlock block;
  const int64_t begin = SumOffset(program, step, step.sums.front(), 0);
  for (const int sum : step.sums) {
    const TensorType& type = program.persistent[static_cast<size_t>(sum)].type;
    block.values.push_back({SumOffset(program, step, sum, 0) - begin, type.elements(), type.dtype});
  }
  block.bytes = step.tree->block_bytes;
  return block;
}

std::byte* TreeMemory::BlockAt(int64_t position) const {
  return arena + SumOffset(program, step, step.sums.front(), position);
}

std::vector<void*> BlocksToAdd(const TreeMemory& memory, int64_t slice) {
  const SliceFold& fold = memory.step.tree->folds[static_cast<size_t>(slice)];
  std::vector<void*> blocks;
  for (int64_t i = 0; i <= fold.additions; ++i) blocks.push_back(memory.BlockAt(fold.position - i));
  return blocks;
}

Result<std::unique_ptr<Kernel>> MakeTreeKernel(const TreeMemory& memory, const PlannedNode& node,
                                               Backend& backend, const TreeRanks& ranks) {
  const SumBlock block = memory.block();
  RIDGE_RETURN_IF_ERROR(CheckSums(block));
  const SliceShare& share = memory.step.tree->share;
  std::unique_ptr<Kernel> kernel;
  if (node.choice.kernel == kTreeAddKernel) {
    kernel = std::make_unique<TreeAddKernel>(backend, block);
  } else if (ranks.communicator == nullptr) {
    kernel = std::make_unique<NobodyElse>(share.ranks);
  } else {
    TreeSum::Place place;
    const size_t parts = PartsOf(share.owned(), share.slices).size();
    for (size_t k = 0; k < parts; ++k)
      place.parts.push_back(memory.BlockAt(static_cast<int64_t>(k)));
    place.scratch = memory.arena + node.workspace_offset;
    kernel = std::make_unique<TreeSumKernel>(
        backend, std::make_unique<TreeSum>(*ranks.communicator, share, block, std::move(place)),
        *ranks.spent_s);
  }
  return kernel;
}

}  // namespace ridge
