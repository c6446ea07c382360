#include "ridge/runtime/staged_ranks.h"

#include <algorithm>

#include "ridge/plan/tree_sums.h"

namespace ridge {
namespace {

class StagedRanks : public Communicator {
 public:
  StagedRanks(Communicator& ranks, Device& device, std::unique_ptr<Memory> staging)
      : ranks_(ranks),
        stream_(device.stream(0)),
        staging_(std::move(staging)),
        sends_(static_cast<size_t>(ranks.size())),
        receives_(static_cast<size_t>(ranks.size())) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  int64_t sent_bytes() const override { return ranks_.sent_bytes(); }
  void Tell(const RankDoing& doing) override { ranks_.Tell(doing); }
  void Name(const char* collective) override { ranks_.Name(collective); }

  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    used_ = 0;
    for (size_t r = 0; r < sends.size(); ++r) sends_[r] = Staged(sends, r);
    for (size_t r = 0; r < receives.size(); ++r)
      receives_[r] = IsOwn(r) ? std::span<std::byte>() : Take(receives[r].size());
    RIDGE_RETURN_IF_ERROR(stream_.Synchronize());
    RIDGE_RETURN_IF_ERROR(ranks_.Exchange(sends_, receives_));
    for (size_t r = 0; r < receives.size(); ++r) {
      if (receives_[r].empty()) continue;
      stream_.Upload(receives[r].data(), receives_[r].data(), std::ssize(receives[r]));
    }
    return stream_.Synchronize();  // the next exchange takes the same staging memory
  }

 private:
  bool IsOwn(size_t r) const { return static_cast<int>(r) == rank(); }

  std::span<std::byte> Take(size_t bytes) {
    RIDGE_CHECK(used_ + static_cast<int64_t>(bytes) <= staging_->bytes(),
                "an exchange fits into its staging memory");
    std::byte* const at = staging_->data() + used_;
    used_ += static_cast<int64_t>(bytes);
    return {at, bytes};
  }

  // What several ranks get crosses once.
  std::span<const std::byte> Staged(const std::vector<std::span<const std::byte>>& sends,
                                    size_t r) {
    const std::span<const std::byte> own = sends[r];
    if (own.empty() || IsOwn(r)) return {};
    for (size_t before = 0; before < r; ++before) {
      const bool same = sends[before].data() == own.data() && sends[before].size() == own.size();
      if (same && !IsOwn(before)) return sends_[before];
    }
    const std::span<std::byte> staged = Take(own.size());
    stream_.Download(staged.data(), own.data(), std::ssize(own));
    return staged;
  }

  Communicator& ranks_;
  Stream& stream_;
  const std::unique_ptr<Memory> staging_;
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
  int64_t used_ = 0;
};

}  // namespace

// Of a sum a rank sends what it does not add up, and receives the other ranks' parts of its chunk,
// whose bytes are rounded up to whole lines; of a gather it has both.
int64_t StagedExchangeBytes(const Program& program) {
  int64_t most = 0;
  for (const StepPlan& step : program.steps) {
    if (!step.tree || step.tree->share.ranks == 1) continue;
    const int64_t lines = step.tree->share.ranks * kChunkLine;
    for (const PlannedNode& node : step.nodes) {
      if (!IsTreeNode(node)) continue;
      const int64_t bytes =
          IsGather(node) ? node.call.outputs[0].bytes() : step.tree->block_bytes + lines;
      most = std::max(most, 2 * bytes);
    }
  }
  return most;
}

Result<std::unique_ptr<Communicator>> StageRanks(Communicator& ranks, Device& device,
                                                 int64_t bytes) {
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Memory> staging, device.AllocateStaging(bytes));
  return std::unique_ptr<Communicator>(
      std::make_unique<StagedRanks>(ranks, device, std::move(staging)));
}

}  // namespace ridge
