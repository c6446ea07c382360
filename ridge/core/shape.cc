#include "ridge/core/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ridge {

int64_t ElementCount(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Status CheckDims(const Dims& dims) {
  constexpr int64_t kMaxElements = int64_t{1} << 48;
  if (dims.size() > 16) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("a shape has {} dimensions; at most 16 are supported", dims.size()));
  }
  int64_t product = 1;  // over the extents that are not 0, so that [2^40,2^40,0] is refused too
  for (int64_t d : dims) {
    if (d < 0) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("shape {} has the negative extent {}", DimsToString(dims), d));
    }
    if (d == 0) continue;
    if (d > kMaxElements / product) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("shape {} has more than 2^48 elements", DimsToString(dims)));
    }
    product *= d;
  }
  return Status();
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::string DimsToString(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

std::string TypeToString(const TensorType& type) {
  return DTypeName(type.dtype) + DimsToString(type.dims);
}

Result<Dims> BroadcastDims(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // i counts from the right
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("shapes {} and {} do not broadcast: {} against {} at dimension {} "
                                "from the right",
                                DimsToString(a), DimsToString(b), da, db, i + 1));
    }
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

Result<int> NormalizeAxis(int64_t axis, int rank, const std::string& where) {
  if (axis < -rank || axis >= rank) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: axis is {} but the input has rank {}; axis must be in [{}, {}]",
                              where, axis, rank, -rank, rank - 1));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace ridge
