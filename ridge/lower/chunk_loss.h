// ChunkLoss: the logits of some rows at a time, with their loss and what the gradient makes of
// them.
//
//   logits = x w   losses = f(logits)   dlogits = g(logits)   dx = dlogits w^T   dw = x^T dlogits
//
// becomes this of each chunk of rows; losses and dx are joined, dw is added up.  A language model's
// logits are its largest value, and whole only where all rows wait for the backward pass.
// docs/design/0062-loss-chunks.md.
#pragma once
#include <cstdint>
#include <optional>

#include "ridge/graph/graph.h"

namespace ridge {

// Logits that can be computed in chunks: those of a cross entropy that come from a product.  They,
// and all that is made of them and as large, are read row by row or in sums over rows.
struct ChunkableLogits {
  int64_t rows = 0;  // of the first dimension that has more than one, as a rule samples
  int64_t bytes = 0;
  int64_t tokens = 1;  // rows of the dimension behind it; 1: it cannot be cut
};

// More chunks than that are made only where they are asked for.
constexpr int64_t kMostLossChunks = 64;

// The fewest equal chunks that are `chunks` or more, or one for each row.  They divide samples
// where a number up to kMostLossChunks does, or else tokens if these come nearer.
int64_t CountOfChunks(const ChunkableLogits& logits, int64_t chunks);

struct ChunkedLoss {
  Graph graph;
  std::optional<ChunkableLogits> logits;  // the largest, as they were; nullopt: there are none
};

// The largest logits in CountOfChunks(); the same graph for 1.  Sums over rows are rounded once a
// chunk, so gradients of the product's weight have other bits.
Result<ChunkedLoss> ChunkLoss(Graph graph, int64_t chunks);

}  // namespace ridge
