#include "ridge/backend/cuda/kernels/index_text.h"

#include <fmt/format.h>

#include <limits>

namespace ridge::cuda {
namespace {

// The step of a loop is added before it ends.
thread_local int64_t wide_from = std::numeric_limits<int32_t>::max() / 2;

// Neighbours that one stride walks through become one dimension.
void Merge(Dims& dims, Dims& strides) {
  for (size_t d = dims.size(); d-- > 1;) {
    const bool one = dims[d] == 1 || dims[d - 1] == 1;
    if (!one && strides[d - 1] != strides[d] * dims[d]) continue;
    if (dims[d] == 1) strides[d] = strides[d - 1];
    dims[d - 1] *= dims[d];
    strides[d - 1] = strides[d];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
}

std::string IndexAlong(const Dims& dims, size_t d, const std::string& element) {
  int64_t inner = 1;
  for (size_t k = d + 1; k < dims.size(); ++k) inner *= dims[k];
  std::string index = inner == 1 ? element : fmt::format("{} / {}", element, inner);
  return d == 0 ? index : fmt::format("{} % {}", index, dims[d]);
}

}  // namespace

std::string OffsetText(const Dims& dims, const Dims& strides, const std::string& element) {
  Dims merged = dims, steps = strides;
  Merge(merged, steps);
  std::string text;
  for (size_t d = 0; d < merged.size(); ++d) {
    if (steps[d] == 0 || merged[d] == 1) continue;
    const std::string index = IndexAlong(merged, d, element);
    text += text.empty() ? "" : " + ";
    text += steps[d] == 1 ? index : fmt::format("{} * ({})", index, steps[d]);
  }
  return text.empty() ? "0" : text;
}

Dims BroadcastStrides(const Dims& from, const Dims& to) {
  const Dims own = RowMajorStrides(from);
  Dims strides(to.size(), 0);
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1) strides[to.size() - from.size() + d] = own[d];
  }
  return strides;
}

const char* IndexType(int64_t elements) { return elements < wide_from ? "int" : "i64"; }

WideIndicesFrom::WideIndicesFrom(int64_t elements) : before_(wide_from) { wide_from = elements; }

WideIndicesFrom::~WideIndicesFrom() { wide_from = before_; }

}  // namespace ridge::cuda
