// transpose: where the last dimension changes, squares of x go through shared memory, so that both
// sides are read and written along their rows; else, or where a side is narrow, runs are moved.
#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/move_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kNarrow = 16;  // elements: below, a square would be mostly empty

// x's columns are y's rows.  The pitch of a square's rows keeps a column in 32 banks.
constexpr std::string_view kTransposeText = R"cuda(
typedef $Word Word;
typedef $Index Index;
RIDGE_KERNEL void transpose(const Word* x, Word* y) {
  __shared__ Word square[$edge][$pitch];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (Index tile = blockIdx.x; tile < $tiles; tile += gridDim.x) {
    const Index e = tile / $y_tiles / $x_tiles;
    const Index column = tile / $y_tiles % $x_tiles * $edge;  // of x
    const Index row = tile % $y_tiles * $edge;
    const Index from = $from, to = $to;
#pragma unroll
    for (int r = warp; r < $edge; r += 8) {
#pragma unroll
      for (int c = lane; c < $edge; c += 32)
        if (row + r < $rows && column + c < $columns)
          square[r][c] = x[from + (row + r) * $x_pitch + column + c];
    }
    __syncthreads();
#pragma unroll
    for (int r = warp; r < $edge; r += 8) {
#pragma unroll
      for (int c = lane; c < $edge; c += 32)
        if (column + r < $columns && row + c < $rows)
          y[to + (column + r) * $y_pitch + row + c] = square[c][r];
    }
    __syncthreads();
  }
}
)cuda";

// As y has its dimensions; `own` are the strides of x.
StridedMove MoveOf(const OpCall& call, const Dims& own) {
  const Dims &x = call.inputs[0].dims, &y = call.outputs[0].dims;
  std::vector<int64_t> permutation = call.integers("permutation");
  for (size_t d = x.size(); permutation.size() < x.size();)
    permutation.push_back(static_cast<int64_t>(--d));
  StridedMove move{y, {}, RowMajorStrides(y)};
  for (const int64_t from : permutation) move.from.push_back(own[static_cast<size_t>(from)]);
  return move;
}

// The dimension along which x has its rows; that of y is the last.
size_t RowOfX(const StridedMove& move) {
  return static_cast<size_t>(std::find(move.from.begin(), move.from.end(), 1) - move.from.begin());
}

// In the order in which x lies: its reads are runs, its writes are those of a narrow y.
StridedMove AlongX(const StridedMove& move, size_t row) {
  StridedMove along = move;
  for (Dims* list : {&along.dims, &along.from, &along.to})
    std::rotate(list->begin() + static_cast<std::ptrdiff_t>(row),
                list->begin() + static_cast<std::ptrdiff_t>(row) + 1, list->end());
  return along;
}

void WriteSquares(const StridedMove& move, size_t row, int64_t element_bytes, KernelText& text) {
  const size_t last = move.dims.size() - 1;
  const int64_t edge = element_bytes <= 2 ? 64 : 32;
  const int64_t columns = move.dims[row], rows = move.dims[last];
  const int64_t x_tiles = CeilDiv(columns, edge), y_tiles = CeilDiv(rows, edge);
  Dims dims, from, to;
  for (size_t d = 0; d < last; ++d) {
    if (d == row) continue;
    dims.push_back(move.dims[d]);
    from.push_back(move.from[d]);
    to.push_back(move.to[d]);
  }
  const int64_t tiles = ElementCount(dims) * x_tiles * y_tiles;
  const auto number = [](int64_t value) { return std::to_string(value); };
  text.source =
      FillText(kTransposeText, {{"Word", WordType(element_bytes)},
                                {"Index", IndexType(tiles * edge * edge)},
                                {"edge", number(edge)},
                                {"pitch", number(edge + std::max<int64_t>(1, 4 / element_bytes))},
                                {"tiles", number(tiles)},
                                {"x_tiles", number(x_tiles)},
                                {"y_tiles", number(y_tiles)},
                                {"columns", number(columns)},
                                {"rows", number(rows)},
                                {"x_pitch", number(move.from[last])},
                                {"y_pitch", number(move.to[row])},
                                {"from", OffsetText(dims, from, "e")},
                                {"to", OffsetText(dims, to, "e")}});
  text.launches = {{"transpose",
                    BlocksForRows(tiles),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Output(0)}}};
}

const char* WriteFrom(const Dims& strides, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const int64_t bytes = BytesPerElement(x.dtype);
  StridedMove move = MoveOf(call, strides);
  move.Merge();
  const size_t row = RowOfX(move);
  if (row + 1 >= move.dims.size() || move.dims.back() < kNarrow) {
    WriteMove(move, bytes, x.elements(), text);
  } else if (move.dims[row] < kNarrow) {
    WriteMove(AlongX(move, row), bytes, x.elements(), text);
  } else {
    WriteSquares(move, row, bytes, text);
  }
  return nullptr;
}

const char* WriteTranspose(const OpDef&, const OpCall& call, KernelText& text) {
  return WriteFrom(RowMajorStrides(call.inputs[0].dims), call, text);
}

// To [N, H, W, C] it copies x as it lies.
const char* WriteTransposeChannelsLast(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  if (!HasLayouts(x)) return refusal::kLayout;
  const std::vector<size_t> order = ChannelsLastOrder(x.rank());
  const Dims stored = RowMajorStrides(StoredChannelsLast(x).dims);
  Dims strides(order.size());
  for (size_t place = 0; place < order.size(); ++place) strides[order[place]] = stored[place];
  return WriteFrom(strides, call, text);
}

}  // namespace

TextKernelDef TransposeTextKernel() {
  return {.name = "cuda.transpose",
          .ops = {"transpose"},
          .write = WriteTranspose,
          .write_channels_last = WriteTransposeChannelsLast,
          .row_major_outputs = {0}};
}

}  // namespace ridge::cuda
