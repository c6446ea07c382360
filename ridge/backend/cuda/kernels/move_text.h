// Texts of kernels that move elements, whatever their dtype: by words of 1 to 16 bytes.
#pragma once
#include <string>
#include <vector>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/core/shape.h"

namespace ridge::cuda {

// The type of a word of 1, 2, 4, 8 or 16 bytes: "u32".
const char* WordType(int64_t bytes);

// Bytes of the widest word that elements of `element_bytes` can be moved by, if runs of elements
// begin and end at multiples of each of `elements`.
int64_t WordBytes(int64_t element_bytes, const std::vector<int64_t>& elements);

// A word in which each element is `value`, as the dtype stores it.
std::string WordLiteral(int64_t word_bytes, DType dtype, double value);

// Elements that move: index i of `dims` from from_first + sum of i * from to to_first + sum of
// i * to.  Neighbours in memory at either side should be neighbours of `dims`.
struct StridedMove {
  Dims dims, from, to;
  int64_t from_first = 0, to_first = 0;

  // Drops extents of 1 and joins dimensions that both sides walk through by one stride.
  void Merge();
  void Erase(size_t d);
};

// A kernel that writes `count` words of the last of its arguments, which is named y.
struct MoveKernel {
  std::string name;
  std::string parameters;           // all but y: "const Word* x"
  std::vector<Argument> arguments;  // of these; y is output 0
  std::string value;                // the word with the number e: "x[e]"
  std::string to = "e";             // where in y it goes
  int64_t count = 0;
};

// The types Word and Index, which values use.  `reach`: the largest number of elements that an
// Index counts.
std::string MoveTypes(int64_t word_bytes, int64_t reach);
// Appends the kernel and its launch.  A thread has several loads under way before its first store.
void AppendMove(const MoveKernel& kernel, KernelText& text);

// One launch, from input 0 to output 0.  `reach`: elements of the larger one.
void WriteMove(StridedMove move, int64_t element_bytes, int64_t reach, KernelText& text);

}  // namespace ridge::cuda
