#include "ridge/graph/passes/slice_ranges.h"

#include <algorithm>

namespace ridge {

std::optional<std::vector<Rows>> SliceRows(const AttrMap& attrs, const Dims& dims) {
  const auto list = [&](const char* name) -> const std::vector<int64_t>& {
    return std::get<std::vector<int64_t>>(attrs.at(name));
  };
  const std::vector<int64_t>&starts = list("starts"), &ends = list("ends"), &steps = list("steps");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s != 1; })) return {};
  std::vector<Rows> ranges;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = list("axes").empty() ? static_cast<int64_t>(i) : list("axes")[i];
    if (axis < 0) axis += static_cast<int64_t>(dims.size());
    const int64_t extent = dims[static_cast<size_t>(axis)];
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    const int64_t first = place(starts[i]), count = place(ends[i]) - first;
    const auto same = [axis](const Rows& rows) { return rows.axis == axis; };
    if (count <= 0 || std::any_of(ranges.begin(), ranges.end(), same)) return {};
    if (count < extent) ranges.push_back({axis, first, count});
  }
  return ranges;
}

AttrMap SliceAttrsOf(const std::vector<Rows>& ranges) {
  std::vector<int64_t> axes, starts, ends;
  for (const Rows& rows : ranges) {
    axes.push_back(rows.axis);
    starts.push_back(rows.first);
    ends.push_back(rows.end());
  }
  return {{"axes", axes}, {"starts", starts}, {"ends", ends}};
}

}  // namespace ridge
