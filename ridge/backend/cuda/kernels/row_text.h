// Texts for blocks that take a row of neighbours at a time: its elements in packs, which a thread
// keeps in registers where the row is short enough.  A row whose elements one warp can keep is one
// warp's, which waits for no other.
#pragma once
#include <string>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/backend/cuda/kernels/reduce_text.h"

namespace ridge::cuda {

struct RowShape {
  int64_t rows = 1, extent = 1;
  int pack = 1;       // elements that a thread moves at once
  int threads = 32;   // that take a row
  int64_t each = 1;   // packs of a thread
  bool keeps = true;  // a thread's packs stay in registers

  int64_t groups() const { return extent / pack; }
  // Of a launch: as many threads as `most` blocks of kBlockThreads have, at most.
  int64_t Blocks(int64_t most = kMostBlocks) const;
  // rows, extent, count (of elements, at least 1, as an R), pack, threads, each, groups;
  // each_group: "for (..) if (..)" over packs `g` of a row, the thread's `j`-th.
  TextValues Values() const;
};
// `element_bytes` are those of the narrowest operand, `most_kept` the elements that a thread may
// keep of an operand.
RowShape ShapeOfRows(int64_t rows, int64_t extent, int64_t element_bytes, int64_t most_kept);

// Row<T>(const T* first): a row whose packs at(j, g) are numbers of type R.
// REQUIRES: a type R before it.
std::string RowText(const RowShape& shape);

// BlockLogSumExp<Out>(const Row<T>&, R* scratch, i64& place): log(sum(exp(row))), without overflow;
// the sum is an R.  `place` is for BlockArgmax(place, i64* scratch): the place of the row's first
// largest number, where NaN counts as largest.  All threads call them; `scratch` holds 32 numbers
// of shared memory each.
std::string LogSumExpText(const RowShape& shape, const std::string& stored);

}  // namespace ridge::cuda
