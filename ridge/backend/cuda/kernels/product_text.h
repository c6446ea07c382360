// Texts of kernels that are products: sum[batch, m, n] = sum over k of a[batch, m, k] b[batch, k,
// n].
//
// What a and b are is text, so a convolution is a product too, whose operands are read where they
// lie.  Three forms: a block computes a tile of sums, which it feeds through shared memory; where a
// product has few rows and is short, a thread computes one sum; where it has few rows and is long,
// a block does.  Where there are few tiles and long sums, blocks take parts of the sums, which a
// second launch adds in order.
#pragma once
#include <string>
#include <vector>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/graph/op_def.h"

namespace ridge::cuda {

// Parameters of a kernel's function and what is passed for them.
struct Parameters {
  std::string text;  // "const float* a, float* y"
  std::vector<Argument> arguments;

  void Add(const std::string& declaration, Argument argument);
  // A pointer of this name to the elements of an operand of the call.
  void AddInput(const OpCall& call, size_t input, std::string_view name);
  void AddOutput(const OpCall& call, size_t output, std::string_view name);
  void Append(const Parameters& more);
};

struct ProductText {
  const char* compute = "float";  // the type R of the sums
  int64_t batch = 1, rows = 0, columns = 0, depth = 0;
  // The largest number that the texts compute with: elements of an operand, for instance.
  int64_t largest_index = 0;
  // Statements that return a at (m, k) and b at (k, n), of type R; all indices are inside.  `batch`
  // is known.
  std::string a = {}, b = {};
  bool a_along_depth = false, b_along_depth = false;  // neighbours in memory are along k
  Parameters operands = {};                           // of a and b
  // Statements that store `value`, the sum at (batch, m, n).  Where `together` is 4, they store
  // values[0..3] at n to n + 3 instead, and n is a multiple of 4.
  std::string store = {};
  int together = 1;
  Parameters results = {};  // of `store`
};

// The kernel.  REQUIRES: batch, rows and columns are at least 1, and columns a multiple of
// together. Returns one of refusal::*, or nullptr.
const char* WriteProduct(const ProductText& product, KernelText& text);

// Adds bias, if input `bias` is given, and the steps of the attribute `epilogue` to `store`, and
// stores `value` as element `at` of output 0, both expressions over batch, m and n.
const char* AddFinish(const OpCall& call, size_t bias, const std::string& bias_at,
                      const std::string& at, ProductText& product);

// Type of the sums of a call: double where an operand is f64 or a whole number, else float.
const char* SumType(const OpCall& call);

// Sums of a thread along one side of a tile, for this extent: a power of two, at most `most`.
int64_t SumsAlong(int64_t extent, int64_t most);

// Functions on tiles in shared memory, for products inside other kernels.  They need the types R
// and Index, and blocks of 256 threads.
std::string_view TileFunctions();

}  // namespace ridge::cuda
