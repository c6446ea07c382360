// BlockAdder: adds blocks of sums in the memory of any device, by the backend's kernels of `add`.
#pragma once
#include <memory>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/core/slice_tree.h"
#include "ridge/dist/sum_block.h"

namespace ridge {

class BlockAdder {
 public:
  // Of these bytes of a block.  Fails as Backend::Create() does, and with kUnsupported: a narrow
  // value, or a type that the backend does not add.  `backend` outlives it.  Not thread-safe.
  static Result<BlockAdder> Create(Backend& backend, const SumBlock& block,
                                   const std::vector<ByteRange>& ranges);

  // Enqueues to = left + right, by the starts of three blocks; `to` may be one of the others.  The
  // bits are AddSums()'s.  Bytes between values mean nothing afterwards.
  Status Add(Stream& stream, const std::byte* left, const std::byte* right, std::byte* to) const;

 private:
  struct Piece {
    int64_t offset_bytes = 0;
    std::unique_ptr<Kernel> kernel;
  };
  std::vector<Piece> pieces_;
  std::unique_ptr<Memory> workspace_;  // where a kernel wants one; a GPU's do not
};

}  // namespace ridge
