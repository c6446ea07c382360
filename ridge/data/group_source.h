// GroupSource: a source whose samples are drawn by groups, each with its share of an epoch.
//
// An epoch is as long as the source.  Number k of a group's range in epoch e is its draw
// e * count + k; draws go through all samples of the group in an order of (seed, group, pass)
// before any comes again, as those of MixtureSource.  So what is read is a function of
// (seed, epoch, index), and any position is reached at once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

class GroupSource : public Source {
 public:
  static constexpr int32_t kNoGroup = -1;

  // `groups`: that of each sample, or kNoGroup: it is never drawn.  `shares`: one a group; 0: its
  // samples are not drawn.  `counted`: sources whose memory is counted elsewhere.  Null where no
  // sample has a group of a share above 0.
  // REQUIRES: a group for each sample, below shares.size(); finite shares of at least 0.
  static std::shared_ptr<const GroupSource> Create(SourcePtr source,
                                                   const std::vector<int32_t>& groups,
                                                   const std::vector<double>& shares, uint64_t seed,
                                                   std::vector<SourcePtr> counted = {});

  struct Group {
    int32_t name = 0;
    int64_t begin = 0, samples = 0;  // in order_
    int64_t count = 0;               // draws of an epoch
  };
  const std::vector<Group>& groups() const { return groups_; }  // those that are drawn
  int64_t SampleOf(SampleAt at) const;

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override { return source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return source_->reads_slowly(); }
  bool reads_crops() const override { return source_->reads_crops(); }
  bool draws_by_epoch() const override { return true; }
  std::string Origin(int64_t index) const override;  // of a draw: "photos[draw 7]"
  std::string OriginAt(SampleAt at) const override;
  int64_t resident_bytes() const override;

 private:
  GroupSource(SourcePtr source, std::vector<Group> groups, std::vector<uint32_t> order,
              uint64_t seed, std::vector<SourcePtr> counted);

  const SourcePtr source_;
  const std::vector<Group> groups_;
  std::vector<int64_t> ends_;          // of the groups' ranges
  const std::vector<uint32_t> order_;  // samples by group
  const uint64_t seed_;
  const std::vector<SourcePtr> counted_;
};

}  // namespace ridge
