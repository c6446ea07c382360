#include "ridge/graph/ops/shared/slice.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

// Step 0 was refused.
AxisSlice ClampRange(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (extent == 0) return {};
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  const bool up = step > 0;
  start = std::clamp<int64_t>(start, 0, up ? extent : extent - 1);
  end = std::clamp<int64_t>(end, up ? 0 : -1, up ? extent : extent - 1);
  const int64_t distance = up ? end - start : start - end;
  if (distance <= 0) return {};
  // (distance - 1) / |step| without |step|, which overflows for -2^63.
  const int64_t count = (up ? (distance - 1) / step : -((distance - 1) / step)) + 1;
  return {start, count == 1 ? 1 : step, count};  // a huge step is never walked
}

Status CheckLists(const OpCall& call) {
  const size_t count = call.integers("starts").size();
  for (const char* name : {"ends", "axes", "steps"}) {
    const std::vector<int64_t>& list = call.integers(name);
    const bool may_be_empty = name != std::string_view("ends");
    if (list.size() == count || (may_be_empty && list.empty())) continue;
    return CallError(call, fmt::format("{} is {}, starts is {}; they must have one length", name,
                                       DimsToString(list), DimsToString(call.integers("starts"))));
  }
  return Status();
}

}  // namespace

AttrMap SliceAttrs() {
  const std::vector<int64_t> none;
  return {{"axes", none}, {"starts", none}, {"ends", none}, {"steps", none}};
}

Result<std::vector<AxisSlice>> AxisSlices(const OpCall& call, const Dims& dims) {
  RIDGE_RETURN_IF_ERROR(CheckLists(call));
  std::vector<AxisSlice> ranges;
  for (int64_t extent : dims) ranges.push_back({0, 1, extent});
  std::vector<bool> seen(dims.size(), false);
  const std::vector<int64_t>& axes = call.integers("axes");
  const std::vector<int64_t>& steps = call.integers("steps");
  for (size_t i = 0; i < call.integers("starts").size(); ++i) {
    const int64_t given = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    RIDGE_ASSIGN_OR_RETURN(const int at,
                           NormalizeAxis(given, static_cast<int>(dims.size()), call.where));
    const auto axis = static_cast<size_t>(at);
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0) return CallError(call, "steps has a 0; a step must not be 0");
    if (seen[axis]) {
      return CallError(call,
                       fmt::format("axes is {}; axis {} is there twice", DimsToString(axes), at));
    }
    seen[axis] = true;
    ranges[axis] =
        ClampRange(dims[axis], call.integers("starts")[i], call.integers("ends")[i], step);
  }
  return ranges;
}

Dims SlicedDims(const std::vector<AxisSlice>& ranges) {
  Dims dims;
  for (const AxisSlice& range : ranges) dims.push_back(range.count);
  return dims;
}

SliceView ViewSlice(const std::vector<AxisSlice>& ranges, const Dims& dims) {
  SliceView view;
  const Dims own = RowMajorStrides(dims);
  for (size_t d = 0; d < dims.size(); ++d) {
    view.base += ranges[d].start * own[d];
    view.strides.push_back(ranges[d].step * own[d]);
  }
  return view;
}

}  // namespace ridge
