// Attention of one head in tiles of scores that stay in cache, f32, vectorized.
//
// A tile holds scores transposed: [keys, kTileQueries], a query a lane.  So the maximum and the sum
// over keys need no work across lanes, and all five products of forward and backward take their
// operands in place; only the block of q (and of dy) is transposed, once.
// Rows of an operand may be apart, as the heads of a packed projection are.  What a product reads
// again and again (a tile of v, in the backward pass of k, q and dy) is then copied contiguously
// into the scratch: rows a few KB apart would share a few sets of the first cache.
#pragma once
#include <cstdint>

#include "ridge/backend/cpu/kernels/prefetch_queue.h"

namespace ridge::cpu {

inline constexpr int64_t kTileQueries = 64, kTileKeys = 64;

// What all heads have in common.
struct AttentionShape {
  int64_t queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  float scale = 1, softcap = 0;  // softcap 0: none
  bool causal = false;
  int64_t causal_offset = 0;
  bool mask_is_bool = false;
  int64_t mask_row = 0, mask_col = 0;  // strides of queries and keys, in elements
  // From one row to the next; dq, dk, dv and dy as q, k, v and y.
  int64_t q_row = 0, k_row = 0, v_row = 0, y_row = 0;

  // Keys that some query before `query_end` sees: [0, result).
  int64_t VisibleKeys(int64_t query_end) const;
  // How often a head's products call PrefetchQueue::Fetch, at least, for all queries and keys.
  int64_t ForwardFetches() const;
  int64_t BackwardFetches() const;
  // Floats of scratch for one call.
  int64_t ForwardScratch() const;
  int64_t BackwardScratch() const;
};

// to[r][c] = from[r][c] for r < rows, c < width; rows are `from_row` and `to_row` apart.
void CopyRows(const float* from, int64_t from_row, int64_t rows, int64_t width, float* to,
              int64_t to_row);

// One head of q with the head of k and v that it reads.
struct AttentionHead {
  const float* q;                  // [queries, head_dim], as all below by the shape's strides
  const float* k;                  // [keys, head_dim]
  const float* v;                  // [keys, value_dim]
  const void* mask = nullptr;      // f32 or bool, by the shape's strides
  PrefetchQueue* ahead = nullptr;  // what comes after this head; asked for between the products
};

// y [queries, value_dim] and logsumexp [queries], for queries [begin, end) of the head;
// end - begin <= kTileQueries.
void AttentionForward(const AttentionShape& shape, const AttentionHead& head, int64_t begin,
                      int64_t end, float* y, float* logsumexp, float* scratch);

struct AttentionGrads {
  const float *y, *logsumexp, *dy;  // of the head
  const float* dlogsumexp;          // or nullptr
  float* dq;                        // [queries, head_dim]: what these keys give; written
  int64_t dq_row;                   // from one row of dq to the next
  float* dk;                        // [keys, head_dim]: rows of these keys are added to
  float* dv;                        // [keys, value_dim]
};

// What keys [begin, end) give to the gradients; begin is a multiple of kTileKeys.
void AttentionBackward(const AttentionShape& shape, const AttentionHead& head,
                       const AttentionGrads& grads, int64_t begin, int64_t end, float* scratch);

}  // namespace ridge::cpu
