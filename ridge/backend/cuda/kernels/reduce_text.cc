#include "ridge/backend/cuda/kernels/reduce_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kTermPackBytes = 16;
constexpr int64_t kMostWide = 8;
constexpr int64_t kManyParts = 64, kColumnsOfManyParts = 8;
// Packs of a thread of a row, below which parts cost more than they gain.
constexpr int64_t kLeastTerms = 4;

constexpr std::string_view kReduceTileText = R"cuda(
template <int Columns, int Lanes, bool Rows> struct Tile {
  static RIDGE_FUNCTION int Column() { return Rows ? threadIdx.x / Lanes : threadIdx.x % Columns; }
  static RIDGE_FUNCTION int Lane() { return Rows ? threadIdx.x % Lanes : threadIdx.x / Columns; }
  // Over the lanes of a column, in one order; each of them gets the results.  All threads call it.
  // `scratch` holds N numbers for each thread, and is free again when it returns.
  template <int N, class A, class F>
  static RIDGE_FUNCTION void BlockJoin(A (&own)[N], A* scratch, F join) {
    constexpr int kThreads = Columns * Lanes, kStep = Rows ? 1 : Columns;
    const int lane = Lane();
    for (int k = 0; k < N; ++k) scratch[k * kThreads + threadIdx.x] = own[k];
    __syncthreads();
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
      if (lane < distance) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          A* at = scratch + k * kThreads + threadIdx.x;
          *at = own[k] = join(own[k], at[distance * kStep]);
        }
      }
      __syncthreads();
    }
    for (int k = 0; k < N; ++k) own[k] = scratch[k * kThreads + threadIdx.x - lane * kStep];
    __syncthreads();
  }
  template <class A, class F> static RIDGE_FUNCTION A BlockJoin(A own, A* scratch, F join) {
    A one[1] = {own};
    BlockJoin(one, scratch, join);
    return one[0];
  }
};
)cuda";

constexpr std::string_view kJoinSumsText = R"cuda(
RIDGE_KERNEL __launch_bounds__($threads, 4) void join_sums(const R* terms, $parameters) {
  typedef $own Own;
  __shared__ R scratch[$threads];
  for (i64 tile = blockIdx.x; tile < $tiles; tile += gridDim.x) {
    const i64 o = tile * $columns + Own::Column();
    R sum = 0;
    if (o < $outputs) {
      for (i64 p = Own::Lane(); p < $packs; p += $lanes * $ahead) {
        R next[$ahead];
#pragma unroll
        for (int j = 0; j < $ahead; ++j)
          next[j] = p + j * $lanes < $packs ? terms[(p + j * $lanes) * $outputs + o] : R(0);
#pragma unroll
        for (int j = 0; j < $ahead; ++j) sum += next[j];
      }
    }
    sum = Own::BlockJoin(sum, scratch, Sum());
    if (o < $outputs && Own::Lane() == 0) {
      $write
    }
  }
}
)cuda";

int PowerUpTo(int64_t n, int most) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, most))));
}

int PowerFrom(int64_t n, int most) {
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, most))));
}

void Split(ReduceTile& tile, int64_t most_tiles, int64_t least_wide) {
  const int64_t packs = tile.width / tile.pack;
  if (packs == 0) return;
  const int64_t most = packs / (tile.lanes * (tile.wide > 1 ? least_wide : kLeastTerms));
  const int64_t wanted = most_tiles / tile.ColumnTiles();
  tile.span = CeilDiv(packs, std::clamp<int64_t>(wanted, 1, std::max<int64_t>(most, 1)));
  tile.parts = CeilDiv(packs, tile.span);
}

}  // namespace

int64_t ReduceTile::ColumnTiles() const { return CeilDiv(outputs, int64_t{columns} * wide); }

int64_t ReduceTile::Tiles() const { return ColumnTiles() * parts; }

int64_t ReduceTile::Ahead(int64_t most) const {
  return std::clamp<int64_t>(CeilDiv(span, lanes), 1, most);
}

int64_t ReduceTile::Blocks() const { return std::clamp<int64_t>(Tiles(), 1, 8 * kMostBlocks); }

TextValues ReduceTile::Values() const {
  return {{"columns", std::to_string(columns)},
          {"lanes", std::to_string(lanes)},
          {"own", fmt::format("Tile<{}, {}, {}>", columns, lanes, rows)},
          {"tiles", std::to_string(Tiles())},
          {"parts", std::to_string(parts)},
          {"outputs", std::to_string(outputs)},
          {"packs", std::to_string(width / pack)},
          {"span", std::to_string(span)},
          {"ahead", std::to_string(Ahead())},
          {"pack", std::to_string(pack)},
          {"wide", std::to_string(wide)},
          {"load", std::to_string(pack * wide)},
          {"number", wide == 1 ? "0" : "k"},
          {"threads", std::to_string(columns * lanes)},
          {"scratch", std::to_string(columns * lanes * wide)}};
}

std::string_view ReduceTileText() { return kReduceTileText; }

std::string ReduceView::FirstText(const std::string& o) const {
  return OffsetText(kept, kept_strides, o);
}

std::string ReduceView::TermText(const std::string& r) const {
  return OffsetText(reduced, reduced_strides, r);
}

ReduceView ViewReduction(const Dims& dims, const std::vector<bool>& reduced) {
  const Dims strides = RowMajorStrides(dims);
  ReduceView view;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    (reduced[d] ? view.reduced : view.kept).push_back(dims[d]);
    (reduced[d] ? view.reduced_strides : view.kept_strides).push_back(strides[d]);
  }
  return view;
}

namespace {

// The extent of the innermost run of neighbours of these dimensions.
int64_t InnerRun(const Dims& dims, const Dims& strides) {
  int64_t run = 1;
  for (size_t d = dims.size(); d-- > 0 && strides[d] == run;) run *= dims[d];
  return run;
}

}  // namespace

ReduceTile TileOf(const ReduceView& view, int64_t element_bytes, int64_t most_tiles,
                  int64_t least_wide) {
  ReduceTile tile{.outputs = view.outputs(), .width = view.width()};
  const int64_t run = InnerRun(view.reduced, view.reduced_strides);
  const bool one = tile.outputs == 1;
  tile.rows = one || run > 1 || tile.width <= 1;
  if (tile.rows) {
    const int64_t pack = std::max<int64_t>(kTermPackBytes / element_bytes, 1);
    tile.pack = run % pack == 0 && tile.width > 0 ? static_cast<int>(pack) : 1;
    tile.lanes = PowerUpTo(tile.width / tile.pack, kBlockThreads);
    tile.columns = kBlockThreads / tile.lanes;
  } else {
    const int64_t run_of_numbers = InnerRun(view.kept, view.kept_strides);
    tile.wide = static_cast<int>(std::clamp<int64_t>(kTermPackBytes / element_bytes, 1, kMostWide));
    while (run_of_numbers % tile.wide != 0) tile.wide /= 2;
    tile.columns = PowerFrom(run_of_numbers / tile.wide, kWarpThreads);
    tile.lanes = kBlockThreads / tile.columns;
  }
  tile.span = std::max<int64_t>(tile.width / tile.pack, 1);
  Split(tile, most_tiles, least_wide);
  return tile;
}

ReduceTile TileOfParts(int64_t outputs, int64_t parts) {
  ReduceTile tile{.outputs = outputs, .width = parts, .rows = false};
  tile.columns = PowerFrom(outputs, parts < kManyParts ? kWarpThreads : kColumnsOfManyParts);
  tile.lanes = kBlockThreads / tile.columns;
  tile.span = std::max<int64_t>(parts, 1);
  return tile;
}

std::string JoinSumsText(const ReduceTile& tile, const std::string& parameters,
                         const std::string& write) {
  TextValues values = tile.Values();
  values.emplace_back("parameters", parameters);
  values.emplace_back("write", write);
  return FillText(kJoinSumsText, values);
}

}  // namespace ridge::cuda
