#include "ridge/data/group_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ridge/data/mixture_source.h"
#include "ridge/data/permutation.h"

namespace ridge {
namespace {

constexpr uint32_t kGroupStream = 0x67727000;  // + the name of a group

struct Sorted {
  std::vector<GroupSource::Group> groups;
  std::vector<uint32_t> order;
};

// Samples by group, in their order; groups that nothing is drawn of are left out.
Sorted SortByGroup(const std::vector<int32_t>& groups, const std::vector<double>& shares) {
  std::vector<int64_t> samples(shares.size(), 0);
  for (const int32_t group : groups)
    if (group != GroupSource::kNoGroup) ++samples[static_cast<size_t>(group)];
  Sorted sorted;
  std::vector<int64_t> next(shares.size(), -1);
  int64_t begin = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (samples[i] == 0 || !(shares[i] > 0)) continue;
    sorted.groups.push_back({static_cast<int32_t>(i), begin, samples[i], /*count=*/0});
    next[i] = begin;
    begin += samples[i];
  }
  sorted.order.resize(static_cast<size_t>(begin));
  for (size_t sample = 0; sample < groups.size(); ++sample) {
    if (groups[sample] == GroupSource::kNoGroup) continue;
    int64_t& at = next[static_cast<size_t>(groups[sample])];
    if (at >= 0) sorted.order[static_cast<size_t>(at++)] = static_cast<uint32_t>(sample);
  }
  return sorted;
}

}  // namespace

std::shared_ptr<const GroupSource> GroupSource::Create(SourcePtr source,
                                                       const std::vector<int32_t>& groups,
                                                       const std::vector<double>& shares,
                                                       uint64_t seed,
                                                       std::vector<SourcePtr> counted) {
  RIDGE_CHECK(static_cast<int64_t>(groups.size()) == source->size(), "each sample has a group");
  RIDGE_CHECK(groups.size() <= std::numeric_limits<uint32_t>::max(), "samples have 32-bit numbers");
  Sorted sorted = SortByGroup(groups, shares);
  if (sorted.groups.empty()) return nullptr;
  std::vector<double> drawn;
  for (const Group& group : sorted.groups) drawn.push_back(shares[static_cast<size_t>(group.name)]);
  const std::vector<int64_t> counts = ShareOut(source->size(), drawn);
  for (size_t i = 0; i < counts.size(); ++i) sorted.groups[i].count = counts[i];
  return std::shared_ptr<const GroupSource>(
      new GroupSource(std::move(source), std::move(sorted.groups), std::move(sorted.order), seed,
                      std::move(counted)));
}

GroupSource::GroupSource(SourcePtr source, std::vector<Group> groups, std::vector<uint32_t> order,
                         uint64_t seed, std::vector<SourcePtr> counted)
    : Source(source->name(), source->fields(), source->size()),
      source_(std::move(source)),
      groups_(std::move(groups)),
      order_(std::move(order)),
      seed_(seed),
      counted_(std::move(counted)) {
  int64_t end = 0;
  for (const Group& group : groups_) ends_.push_back(end += group.count);
}

int64_t GroupSource::SampleOf(SampleAt at) const {
  const auto i =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), at.index) - ends_.begin());
  const Group& group = groups_[i];
  const int64_t number = at.index - (ends_[i] - group.count);
  const int64_t draw = at.epoch * group.count + number;
  const Permutation pass(group.samples, seed_, kGroupStream + static_cast<uint32_t>(group.name),
                         /*epoch=*/draw / group.samples);
  return order_[static_cast<size_t>(group.begin + pass.At(draw % group.samples))];
}

Status GroupSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  const SampleAt drawn = at.WithIndex(SampleOf(at));
  const Status read = source_->Read(drawn, field, scratch, out);
  if (read.ok()) return read;
  const std::string origin = source_->OriginAt(drawn);
  if (read.message().starts_with(origin)) return read;
  return Status(read.code(), origin + ": " + read.message());
}

std::string GroupSource::Origin(int64_t index) const {
  return fmt::format("{}[draw {}]", name(), index);
}

std::string GroupSource::OriginAt(SampleAt at) const {
  return source_->OriginAt(at.WithIndex(SampleOf(at)));
}

int64_t GroupSource::resident_bytes() const {
  std::vector<SourcePtr> sources = counted_;
  sources.push_back(source_);
  return ResidentBytes(sources) - ResidentBytes(counted_) +
         static_cast<int64_t>(order_.capacity() * sizeof(uint32_t));
}

}  // namespace ridge
