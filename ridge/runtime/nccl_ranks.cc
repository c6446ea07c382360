#include "ridge/runtime/nccl_ranks.h"

namespace ridge {
namespace {

class NcclRanks : public Communicator {
 public:
  NcclRanks(Communicator& ranks, std::unique_ptr<cuda::NcclGroup> group, Stream& stream)
      : ranks_(ranks), group_(std::move(group)), stream_(stream) {
    RIDGE_CHECK(ranks.rank() == group_->rank() && ranks.size() == group_->size(),
                "a rank has one place");
  }

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  int64_t sent_bytes() const override { return group_->sent_bytes(); }
  void Tell(const RankDoing& doing) override { ranks_.Tell(doing); }
  void Name(const char* collective) override { ranks_.Name(collective); }

  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    RIDGE_RETURN_IF_ERROR(stream_.Synchronize());  // until then it computes, as long as planned
    ranks_.Enter(PayloadBytes(sends, receives));
    Status moved = group_->Exchange(sends, receives);
    if (moved.ok()) moved = stream_.Synchronize();
    if (!moved.ok()) {
      group_->Abort();  // else its work would wait for ever
      return moved;
    }
    ranks_.Leave();
    return Status();
  }

 private:
  Communicator& ranks_;
  const std::unique_ptr<cuda::NcclGroup> group_;
  Stream& stream_;
};

}  // namespace

std::unique_ptr<Communicator> RanksOfGroup(Communicator& ranks,
                                           std::unique_ptr<cuda::NcclGroup> group, Stream& stream) {
  return std::make_unique<NcclRanks>(ranks, std::move(group), stream);
}

}  // namespace ridge
