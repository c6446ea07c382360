// BlockGather: the elements of a row-major array in the order of a blocked layout, block by block.
//
// A blocked layout is an array of inner blocks (BA16a64b: 16 rows of 64 columns), each contiguous.
// So a kernel that works element by element on blocked arrays can read one operand row-major: a
// block's worth is gathered into a buffer that stays in the first cache.
#pragma once
#include <optional>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

namespace ridge::cpu {

class BlockGather {
 public:
  static constexpr int64_t kMostElements = 2048;  // of a block

  // f32.  nullopt for layouts without inner blocks, with larger ones, and with more than two
  // dimensions cut (or one cut twice).
  static std::optional<BlockGather> Plan(const dnnl::memory::desc& blocked);

  int64_t blocks() const { return blocks_; }
  int64_t elements() const { return elements_; }  // of a block, padding included
  // Whether rows of a block are runs of the row-major array; else squares are turned.
  bool by_rows() const { return axes_[inner_.axis].row_major_stride == 1; }
  // Where block k (of an order in which the row-major array is read nearly in order) begins.
  int64_t PlaceOf(int64_t k) const;
  // Asks for what Gather() will read: its short runs are unknown to the processor's prefetchers.
  void Prefetch(const float* row_major, int64_t k) const;
  // Padding becomes 0.
  void Gather(const float* row_major, int64_t k, float* block) const;

 private:
  // A dimension of the tensor: how many blocks, how far apart they are in the layout, and how far
  // apart elements are in the row-major array.
  struct Axis {
    int64_t extent = 0, blocks = 0, block = 1;
    int64_t block_stride = 0, row_major_stride = 0;
  };
  // A cut dimension inside a block.
  struct Side {
    size_t axis = 0;
    int64_t stride = 0;  // in the block
  };
  struct Box;
  void Locate(int64_t k, Box& box) const;

  std::vector<Axis> axes_;
  Side outer_, inner_;  // inner_.stride is 1
  int64_t blocks_ = 0, elements_ = 0;
};

}  // namespace ridge::cpu
