#include "ridge/data/container/sample_sets.h"

#include "ridge/data/batch_spec.h"
#include "ridge/data/content_split.h"
#include "ridge/data/subset.h"

namespace ridge {

Result<std::vector<bool>> ChooseHeldOut(const std::string& name, double fraction,
                                        const std::vector<uint64_t>& hashes) {
  std::vector<bool> held_out(hashes.size(), false);
  ContentSplit split = fraction > 0 ? ContentSplit(fraction) : ContentSplit();
  for (bool settled = false; !settled;) {
    split = split.Uncounted();
    for (size_t i = 0; i < hashes.size(); ++i) held_out[i] = split.Count(hashes[i]);
    RIDGE_ASSIGN_OR_RETURN(settled, split.Settle(name));
  }
  return held_out;
}

void SetTraining(const SampleSet& set, DataSplits& splits) {
  splits.train = set.all;
  if (set.held_out == 0) return;
  const int64_t training = set.all->size() - set.held_out;
  splits.train = std::make_shared<SubsetSource>(set.all, 0, training);
  splits.validation = std::make_shared<SubsetSource>(set.all, training, set.held_out);
  splits.held_out = true;
}

std::vector<ModelSize> SizesOf(const std::vector<Field>& fields, bool has_pictures) {
  std::vector<ModelSize> sizes;
  const Field* features = FindFieldByName("features", fields);
  const bool table = !has_pictures && features != nullptr && features->type.dtype == DType::kF32;
  if (table && features->type.rank() <= 1) sizes.push_back({"inputs", features->type.elements()});
  const Field* label = FindFieldByName("label", fields);
  if (label != nullptr && label->classes > 0) sizes.push_back({"classes", label->classes});
  return sizes;
}

}  // namespace ridge
