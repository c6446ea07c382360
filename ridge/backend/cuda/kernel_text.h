// KernelText: a kernel as CUDA C++ text, and how it is launched.
//
// All extents, strides and attributes of a call are numbers in its text; only addresses are
// arguments.  So equal text is an equal kernel, and one compiled program serves all its calls.  The
// text uses what Prelude() declares, which is CUDA's language without templates of libraries, asm
// or calls between blocks: it is C++ too, and tests/cuda_text/ runs it on the host.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridge::cuda {

inline constexpr int kWarpThreads = 32;
inline constexpr int kBlockThreads = 256;
// Blocks of a loop over elements.  It is part of the order of sums, hence the same on every GPU.
inline constexpr int64_t kMostBlocks = 1056;

// An address that a launch passes.
struct Argument {
  enum class Kind : uint8_t { kInput, kOutput, kWorkspace };
  Kind kind = Kind::kInput;
  int index = 0;             // of the input or output
  int64_t offset_bytes = 0;  // into the workspace

  static Argument Input(int index) { return {Kind::kInput, index, 0}; }
  static Argument Output(int index) { return {Kind::kOutput, index, 0}; }
  static Argument Workspace(int64_t offset_bytes = 0) {
    return {Kind::kWorkspace, 0, offset_bytes};
  }
};

struct Launch {
  std::string function;
  int64_t blocks = 1;           // along x: 1 to 2^31 - 1
  int threads = kBlockThreads;  // of a block: a multiple of a warp, at most 1024
  std::vector<Argument> arguments;
};

struct KernelText {
  std::string source;            // RIDGE_KERNEL void f(const float* x, float* y) {...}
  std::vector<Launch> launches;  // in this order, on one stream
  int64_t workspace_bytes = 0;
  bool in_place = true;  // outputs may share bytes as OpDef::in_place allows

  // Further workspace, at a multiple of 256 bytes.
  Argument Reserve(int64_t bytes);
};

// What every source begins with: types of storage (BF16, Bool, i64, ...), Load() and Store(),
// rounding, mathematics, Philox, and sums of a block.
std::string_view Prelude();

// `text` with every $NAME replaced; "${NAME}" where a letter or digit follows.
// REQUIRES: each name of `text` is given.
std::string FillText(std::string_view text,
                     const std::vector<std::pair<std::string_view, std::string>>& values);

// Blocks for `items` threads' work, at most kMostBlocks: the rest comes by a loop.
int64_t BlocksFor(int64_t items, int threads = kBlockThreads);
// Packs that a thread of a loop over `groups` of them reads before it writes, so that memory is
// kept busy: `bytes` are what a group reads.
int64_t PacksAhead(int64_t groups, int64_t bytes);
// Where a block takes a row at a time: blocks for so many rows, and threads for a row.
int64_t BlocksForRows(int64_t rows);
int ThreadsForRow(int64_t elements);

}  // namespace ridge::cuda
