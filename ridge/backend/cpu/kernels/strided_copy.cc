#include "ridge/backend/cpu/kernels/strided_copy.h"

#include <cstring>

#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

template <typename T>
void CopyElements(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
                  int64_t count) {
  const auto* source = reinterpret_cast<const T*>(from);
  auto* target = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
}

void CopyLine(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
              int64_t count, int64_t element_bytes) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count * element_bytes));
  } else if (element_bytes == 4) {
    CopyElements<uint32_t>(from, from_stride, to, to_stride, count);
  } else if (element_bytes == 8) {
    CopyElements<uint64_t>(from, from_stride, to, to_stride, count);
  } else if (element_bytes == 2) {
    CopyElements<uint16_t>(from, from_stride, to, to_stride, count);
  } else {
    CopyElements<uint8_t>(from, from_stride, to, to_stride, count);
  }
}

// Offsets of the k-th index over `dims` without the dimensions a and b.
struct Offsets {
  int64_t from = 0, to = 0;
};
Offsets OffsetsOf(const StridedCopy& c, int64_t k, size_t a, size_t b) {
  Offsets offsets{c.from_base, c.to_base};
  for (size_t d = c.dims.size(); d-- > 0;) {
    if (d == a || d == b) continue;
    offsets.from += k % c.dims[d] * c.from_strides[d];
    offsets.to += k % c.dims[d] * c.to_strides[d];
    k /= c.dims[d];
  }
  return offsets;
}

constexpr int64_t kSquare = 32;

}  // namespace

void StridedCopy::Simplify() {
  Dims kept, from, to;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const bool merges = !kept.empty() && from.back() == from_strides[d] * dims[d] &&
                        to.back() == to_strides[d] * dims[d];
    if (merges) {
      kept.back() *= dims[d];
      from.back() = from_strides[d];
      to.back() = to_strides[d];
    } else {
      kept.push_back(dims[d]);
      from.push_back(from_strides[d]);
      to.push_back(to_strides[d]);
    }
  }
  if (kept.empty()) kept = from = to = {1};
  dims = kept;
  from_strides = from;
  to_strides = to;
}

// A dimension other than the last along which `from` is contiguous; dims.size() when there is none.
size_t StridedCopy::TransposedDim() const {
  if (from_strides.back() == 1) return dims.size();
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (from_strides[d] == 1) return d;
  }
  return dims.size();
}

void StridedCopy::Run(const void* from, void* to, int parts, int part) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const size_t other = TransposedDim(), last = dims.size() - 1;
  if (other < dims.size()) return RunSquares(source, target, other, parts, part);
  const int64_t rows = ElementCount(dims) / dims[last];
  const bool by_row = rows >= parts;
  const Range range = PartOf(by_row ? rows : dims[last], parts, part, by_row ? 1 : 64);
  for (int64_t row = by_row ? range.begin : 0; row < (by_row ? range.end : rows); ++row) {
    const Offsets at = OffsetsOf(*this, row, last, last);
    CopyRow(source + at.from * element_bytes, target + at.to * element_bytes,
            by_row ? 0 : range.begin, by_row ? dims[last] : range.end);
  }
}

void StridedCopy::CopyRow(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const {
  const int64_t from_stride = from_strides.back(), to_stride = to_strides.back();
  if (begin >= end) return;
  CopyLine(from + begin * from_stride * element_bytes, from_stride,
           to + begin * to_stride * element_bytes, to_stride, end - begin, element_bytes);
}

// Squares of the last dimension and of the one that is contiguous in `from`; parts share the
// rows of squares.
void StridedCopy::RunSquares(const std::byte* from, std::byte* to, size_t other, int parts,
                             int part) const {
  const size_t last = dims.size() - 1;
  const int64_t outer = ElementCount(dims) / dims[last] / dims[other];
  const int64_t strips = (dims[other] + kSquare - 1) / kSquare;
  const Range range = PartOf(outer * strips, parts, part);
  for (int64_t item = range.begin; item < range.end; ++item) {
    const Offsets at = OffsetsOf(*this, item / strips, other, last);
    const int64_t begin = item % strips * kSquare, end = std::min(dims[other], begin + kSquare);
    for (int64_t column = 0; column < dims[last]; column += kSquare) {
      const int64_t count = std::min(kSquare, dims[last] - column);
      for (int64_t j = begin; j < end; ++j) {
        const int64_t source = at.from + j + column * from_strides[last];
        const int64_t target = at.to + j * to_strides[other] + column * to_strides[last];
        CopyLine(from + source * element_bytes, from_strides[last], to + target * element_bytes,
                 to_strides[last], count, element_bytes);
      }
    }
  }
}

}  // namespace ridge::cpu
