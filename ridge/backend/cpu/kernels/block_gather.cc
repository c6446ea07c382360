#include "ridge/backend/cpu/kernels/block_gather.h"

#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/strided_copy.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {

using dnnl::memory;

// The part of a block inside the tensor.
struct BlockGather::Box {
  int64_t place = 0;             // of the block, in the layout
  int64_t from = 0;              // of its first element, in the row-major array
  int64_t outer = 1, inner = 1;  // so many elements along each side
};

std::optional<BlockGather> BlockGather::Plan(const memory::desc& blocked) {
  if (blocked.get_format_kind() != memory::format_kind::blocked) return std::nullopt;
  const memory::dims dims = blocked.get_dims(), strides = blocked.get_strides();
  const memory::dims cuts = blocked.get_inner_blks(), owners = blocked.get_inner_idxs();
  const bool twice = cuts.size() == 2 && owners[0] == owners[1];
  if (cuts.empty() || cuts.size() > 2 || twice) return std::nullopt;
  BlockGather gather;
  gather.axes_.resize(dims.size());
  gather.elements_ = cuts[0] * cuts.back() / (cuts.size() == 1 ? cuts[0] : 1);
  if (gather.elements_ > kMostElements) return std::nullopt;
  for (size_t i = 0; i < cuts.size(); ++i)
    gather.axes_[static_cast<size_t>(owners[i])].block = cuts[i];
  gather.inner_ = {static_cast<size_t>(owners.back()), 1};
  gather.outer_ = cuts.size() == 2 ? Side{static_cast<size_t>(owners[0]), cuts[1]} : gather.inner_;
  int64_t row_major_stride = 1;
  gather.blocks_ = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    Axis& axis = gather.axes_[d];
    axis.extent = dims[d];
    axis.blocks = CeilDiv(dims[d], axis.block);
    axis.block_stride = strides[d];
    axis.row_major_stride = row_major_stride;
    row_major_stride *= dims[d];
    gather.blocks_ *= axis.blocks;
  }
  const auto bytes = static_cast<int64_t>(blocked.get_size());
  if (gather.blocks_ * gather.elements_ * int64_t{sizeof(float)} != bytes) return std::nullopt;
  return gather;
}

void BlockGather::Locate(int64_t k, Box& box) const {
  for (size_t d = axes_.size(); d-- > 0;) {
    const Axis& axis = axes_[d];
    const int64_t at = k % axis.blocks;
    k /= axis.blocks;
    box.place += at * axis.block_stride;
    box.from += at * axis.block * axis.row_major_stride;
    const int64_t inside = std::min(axis.block, axis.extent - at * axis.block);
    if (d == inner_.axis) {
      box.inner = inside;
    } else if (d == outer_.axis) {
      box.outer = inside;
    }
  }
}

int64_t BlockGather::PlaceOf(int64_t k) const {
  Box box;
  Locate(k, box);
  return box.place;
}

void BlockGather::Prefetch(const float* row_major, int64_t k) const {
  constexpr int64_t kLine = 16;  // floats
  Box box;
  Locate(k, box);
  const int64_t stride = axes_[(by_rows() ? outer_ : inner_).axis].row_major_stride;
  const int64_t runs = by_rows() ? box.outer : box.inner;
  const int64_t length = by_rows() ? box.inner : box.outer;
  for (int64_t i = 0; i < runs; ++i) {
    const float* run = row_major + box.from + i * stride;
    for (int64_t j = 0; j < length; j += kLine) __builtin_prefetch(run + j);
  }
}

void BlockGather::Gather(const float* row_major, int64_t k, float* block) const {
  Box box;
  Locate(k, box);
  if (box.outer * box.inner != elements_) std::fill_n(block, elements_, 0.0F);
  const float* from = row_major + box.from;
  const int64_t outer_stride = axes_[outer_.axis].row_major_stride;
  const int64_t inner_stride = axes_[inner_.axis].row_major_stride;
  constexpr int64_t kFloat = sizeof(float);
  if (inner_stride == 1) {
    for (int64_t i = 0; i < box.outer; ++i)
      std::memcpy(block + i * outer_.stride, from + i * outer_stride,
                  static_cast<size_t>(box.inner * kFloat));
  } else if (outer_stride == 1) {
    TransposeSquare(kFloat, reinterpret_cast<const std::byte*>(from), inner_stride * kFloat,
                    reinterpret_cast<std::byte*>(block), outer_.stride * kFloat, box.inner,
                    box.outer);
  } else {
    for (int64_t i = 0; i < box.outer; ++i) {
      for (int64_t j = 0; j < box.inner; ++j)
        block[i * outer_.stride + j] = from[i * outer_stride + j * inner_stride];
    }
  }
}

}  // namespace ridge::cpu
