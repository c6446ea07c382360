#include "ridge/partition/part_runs.h"

namespace ridge {
namespace {

int LastCutDim(const Split& split) {
  int last = -1;
  for (const Cut& cut : split.cuts) last = std::max(last, cut.dim);
  return last;
}

// Of how many indices each run of neighbours is; 1 where they are not equally long.
int64_t NeighboursOf(const std::vector<int64_t>& places) {
  size_t count = 1;
  while (count < places.size() && places[count] == places[count - 1] + 1) ++count;
  for (size_t i = 1; i < places.size(); ++i) {
    const bool neighbours = places[i] == places[i - 1] + 1;
    if (neighbours != (i % count != 0)) return 1;
  }
  return static_cast<int64_t>(count);
}

}  // namespace

PartRuns::PartRuns(const Dims& dims, const Split& split, const MeshPlace& place) {
  const std::vector<int64_t> coordinates = place.mesh.CoordinatesOf(place.device);
  const int last = LastCutDim(split);
  for (size_t d = static_cast<size_t>(last + 1); d < dims.size(); ++d) length_ *= dims[d];
  int64_t stride = length_;
  for (int d = last; d >= 0; --d) {
    const int64_t extent = dims[static_cast<size_t>(d)];
    Along along{PlacesAlong(d, extent, split, place.mesh, coordinates), stride};
    stride *= extent;
    if (d == last && !along.places.empty()) {
      const int64_t neighbours = NeighboursOf(along.places);
      length_ *= neighbours;
      std::vector<int64_t> firsts;
      for (size_t i = 0; i < along.places.size(); i += static_cast<size_t>(neighbours))
        firsts.push_back(along.places[i]);
      along.places = std::move(firsts);
    }
    runs_ *= static_cast<int64_t>(along.places.size());
    outer_.push_back(std::move(along));
  }
}

int64_t PartRuns::PlaceOf(int64_t run) const {
  int64_t place = 0;
  for (const Along& along : outer_) {  // the innermost first
    const auto count = static_cast<int64_t>(along.places.size());
    place += along.places[static_cast<size_t>(run % count)] * along.stride;
    run /= count;
  }
  return place;
}

int64_t PartRuns::FirstFrom(int64_t place) const {
  int64_t low = 0, high = runs_;  // the first run that ends behind `place`
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (PlaceOf(middle) + length_ > place) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == runs_) return elements();
  return low * length_ + std::max<int64_t>(0, place - PlaceOf(low));
}

}  // namespace ridge
