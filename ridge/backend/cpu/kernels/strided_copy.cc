#include "ridge/backend/cpu/kernels/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

// What is written doubles until the line is full: memcpy is as fast as memory.
template <typename T>
void FillElements(T value, std::byte* to, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  const int64_t first = std::min<int64_t>(count, 32);
  std::fill_n(reinterpret_cast<T*>(to), first, value);
  for (int64_t done = first * static_cast<int64_t>(sizeof(T)); done < bytes; done *= 2)
    std::memcpy(to + done, to, static_cast<size_t>(std::min(done, bytes - done)));
}

template <typename T>
void CopyElements(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
                  int64_t count) {
  if (from_stride == 0 && to_stride == sizeof(T)) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return FillElements(value, to, count);
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

void CopyLine(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
              int64_t count, int64_t element_bytes) {
  if (from_stride == element_bytes && to_stride == element_bytes) {
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

// Walks the index tuples over `dims` without the dimensions a and b, in order.
class Walk {
 public:
  Walk(const StridedCopy& c, int64_t k, size_t a, size_t b) : from_(c.from_base), to_(c.to_base) {
    for (size_t d = c.dims.size(); d-- > 0;) {
      if (d == a || d == b) continue;
      Level& level = levels_[count_++];
      level = {c.dims[d], k % c.dims[d], c.from_strides[d], c.to_strides[d]};
      from_ += level.index * level.from_stride;
      to_ += level.index * level.to_stride;
      k /= c.dims[d];
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  void Next() {
    for (size_t l = 0; l < count_; ++l) {
      Level& level = levels_[l];
      from_ += level.from_stride;
      to_ += level.to_stride;
      if (++level.index < level.extent) return;
      from_ -= level.from_stride * level.extent;
      to_ -= level.to_stride * level.extent;
      level.index = 0;
    }
  }

 private:
  struct Level {
    int64_t extent, index, from_stride, to_stride;
  };
  static constexpr size_t kMostDims = 17;  // CheckDims() allows 16
  Level levels_[kMostDims];                // innermost first
  size_t count_ = 0;
  int64_t from_, to_;
};

// Elements of a square's side: whole cache lines, and at most 16 KiB for the square.
int64_t SquareOf(int64_t element_bytes) {
  return element_bytes == 8 ? 32 : element_bytes == 1 ? 128 : 64;
}
constexpr int64_t kStripColumns = 512;

}  // namespace

void StridedCopy::Simplify() {
  MergeDims();
  for (size_t d = 0; d < dims.size(); ++d) {
    from_strides[d] *= element_bytes;
    to_strides[d] *= element_bytes;
  }
  from_base *= element_bytes;
  to_base *= element_bytes;
  WidenElements();
}

void StridedCopy::MergeDims() {
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

// A short run that is contiguous on both sides is one wider element.
void StridedCopy::WidenElements() {
  const int64_t run = dims.back() * element_bytes;
  const bool contiguous =
      from_strides.back() == element_bytes && to_strides.back() == element_bytes;
  if (dims.size() < 2 || !contiguous || (run != 2 && run != 4 && run != 8)) return;
  element_bytes = run;
  dims.pop_back();
  from_strides.pop_back();
  to_strides.pop_back();
}

// A dimension other than the last along which `from` is contiguous, where `to` is along the last;
// dims.size() when there is none.
size_t StridedCopy::TransposedDim() const {
  if (from_strides.back() == element_bytes || to_strides.back() != element_bytes)
    return dims.size();
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (from_strides[d] == element_bytes) return d;
  }
  return dims.size();
}

void StridedCopy::Run(const void* from, void* to, int parts, int part) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const size_t other = TransposedDim();
  if (other < dims.size()) return RunSquares(source, target, other, parts, part);
  RunRows(source, target, parts, part);
}

// Parts are runs of all elements, so that tensors of equal shape are cut at equal places by this
// and by other kernels: a thread finds what it wrote itself, where caches are far from each other.
void StridedCopy::RunRows(const std::byte* from, std::byte* to, int parts, int part) const {
  const size_t last = dims.size() - 1;
  const Range own = PartOf(ElementCount(dims), parts, part, /*grain=*/64);
  if (own.begin >= own.end) return;
  Walk walk(*this, own.begin / dims[last], last, last);
  int64_t column = own.begin % dims[last];
  for (int64_t at = own.begin; at < own.end; walk.Next(), column = 0) {
    const int64_t count = std::min(dims[last] - column, own.end - at);
    CopyLine(from + walk.from() + column * from_strides[last], from_strides[last],
             to + walk.to() + column * to_strides[last], to_strides[last], count, element_bytes);
    at += count;
  }
}

// Squares of the last dimension and of the one that is contiguous in `from`; parts share strips of
// them.  Neighbouring strips read the same rows of `from`, so its pages stay known to the TLB.
void StridedCopy::RunSquares(const std::byte* from, std::byte* to, size_t other, int parts,
                             int part) const {
  const size_t last = dims.size() - 1;
  const int64_t square = SquareOf(element_bytes);
  const int64_t across = CeilDiv(dims[other], square);
  const int64_t along = CeilDiv(dims[last], kStripColumns);
  const int64_t outer = ElementCount(dims) / dims[last] / dims[other];
  const Range own = PartOf(outer * across * along, parts, part);
  for (int64_t item = own.begin; item < own.end; ++item) {
    const Walk walk(*this, item / (across * along), other, last);
    const int64_t j = item % across * square;
    const int64_t begin = item / across % along * kStripColumns;
    const int64_t end = std::min(dims[last], begin + kStripColumns);
    for (int64_t i = begin; i < end; i += square) {
      TransposeSquare(
          element_bytes, from + walk.from() + j * element_bytes + i * from_strides[last],
          from_strides[last], to + walk.to() + j * to_strides[other] + i * element_bytes,
          to_strides[other], std::min(square, end - i), std::min(square, dims[other] - j));
    }
  }
}

}  // namespace ridge::cpu
