// What the texts of attention and of its gradient share: operands, extents, scores.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge::cuda {

class AttentionText {
 public:
  using Names = std::vector<std::pair<std::string_view, std::string>>;

  // `mask` is the number of that input.
  AttentionText(const OpCall& call, size_t mask);

  // Sums of a thread along a side of a tile of scores, and along the columns of what they multiply.
  int64_t ScoreSums(int64_t extent) const;
  int64_t ColumnSums(int64_t extent) const;

  // q, k, v and, where there is one, mask.
  Parameters Operands() const;
  // Types and functions: RowOfQ(), RowOfK(), RowOfV(), RowOfY(), Score(), BlockRowFold(),
  // KeepOwn().
  std::string Begin() const;
  // Extents, and "mask", the last argument of Score().
  void AddExtents(Names& names) const;
  // The end of the keys that some of `queries` queries from `first`, a variable, on see.
  std::string VisibleText(const char* first, int64_t queries) const;

  const OpCall& call;
  const AttentionExtents e;
  const AttentionViews views;
  const int64_t causal_offset;

 private:
  std::string ScoreText() const;
  void AddHidden(Names& names) const;

  const size_t mask_;
  const bool wide_;  // computed in double
};

// An extent as a number of type Index.
std::string IndexNumber(int64_t value);

// Adds the launch, or says that it has too many blocks.
const char* AddLaunch(const char* function, int64_t blocks, const Parameters& parameters,
                      KernelText& text);

}  // namespace ridge::cuda
