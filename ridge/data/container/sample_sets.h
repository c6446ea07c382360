// What all containers do with their samples: hold some out, and say what the data determine.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

// An opened set: its samples, those held out behind the others.
struct SampleSet {
  SourcePtr all;
  int64_t held_out = 0;
};

// Which samples are held out by their hashes; none for a fraction of 0.  Fails as
// ContentSplit::Settle does.
Result<std::vector<bool>> ChooseHeldOut(const std::string& name, double fraction,
                                        const std::vector<uint64_t>& hashes);

// Moves the elements of samples held out to the back; each sample has `width` of them.
template <typename T>
void MoveHeldOutBack(const std::vector<bool>& held_out, std::vector<T>& elements,
                     size_t width = 1) {
  std::vector<T> ordered;
  ordered.reserve(elements.size());
  for (const bool side : {false, true}) {
    for (size_t sample = 0; sample < held_out.size(); ++sample) {
      if (held_out[sample] != side) continue;
      const auto begin = elements.begin() + static_cast<std::ptrdiff_t>(sample * width);
      ordered.insert(ordered.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
  }
  elements = std::move(ordered);
}

// The training set and the part held out of it.
void SetTraining(const SampleSet& set, DataSplits& splits);

// "classes" of the label; "inputs" of the features of a table, which has no pictures.
std::vector<ModelSize> SizesOf(const std::vector<Field>& fields, bool has_pictures);

// The least and the greatest of the integers seen.
struct IntegerRange {
  int64_t least = INT64_MAX, most = INT64_MIN;
  void Add(int64_t value) {
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  bool empty() const { return least > most; }
  int64_t classes() const { return empty() || least < 0 || most == INT64_MAX ? 0 : most + 1; }
};

}  // namespace ridge
