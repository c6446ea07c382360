// MixtureSource: several sources as one, each with its share.
//
// Sample numbers 0..size-1 are cut into a range for each source, as long as its count: shuffling
// (shuffle.h) spreads them over an epoch.  Number k of a source's range in epoch e is its draw
// e * count + k; a source's draws go through all its samples in an order of (seed, source, pass)
// before any comes again, also from one epoch to the next.  So what is read is a function of
// (seed, epoch, position): nothing is counted, and any position is reached at once.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

struct MixturePart {
  SourcePtr source;
  int64_t count = 0;  // of its samples in an epoch
};

class MixtureSource : public Source {
 public:
  // Draws by `seed`; without one each source is read once, in its order, and its count is its size.
  // `counted`: sources whose memory is counted elsewhere, such as what these are held out of.
  // REQUIRES: parts have equal fields but for their classes, and counts of at least 1.
  MixtureSource(std::string name, std::vector<MixturePart> parts, std::optional<uint64_t> seed,
                std::vector<SourcePtr> counted = {});

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override;
  int64_t heap_bytes() const override;
  bool draws_by_epoch() const override { return seed_.has_value(); }
  bool reads_slowly() const override;
  bool reads_crops() const override;
  // Of draws, which differ from epoch to epoch: "a.csv[draw 7]".
  std::string Origin(int64_t index) const override;
  std::string OriginAt(SampleAt at) const override;
  int64_t resident_bytes() const override;

  struct Draw {
    size_t part = 0;
    int64_t sample = 0;
    bool operator==(const Draw&) const = default;
  };
  Draw DrawAt(SampleAt at) const;

 private:
  struct Place {
    size_t part = 0;
    int64_t number = 0;  // in the part's range
  };
  Place PlaceOf(int64_t index) const;

  const std::vector<MixturePart> parts_;
  const std::optional<uint64_t> seed_;
  const std::vector<SourcePtr> counted_;
  std::vector<int64_t> ends_;  // of the parts' ranges
};

// Shares `samples` out by weights, each at least 1 and all together `samples`: the nearest
// integers, by largest remainders.  REQUIRES: as many samples as weights; weights above 0.
std::vector<int64_t> ShareOut(int64_t samples, const std::vector<double>& weights);

}  // namespace ridge
