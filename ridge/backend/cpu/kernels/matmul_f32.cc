// matmul in f32 by our own packing product: under AVX-512 for weight gradients of many rows, where
// oneDNN's copies of a transposed `a` cost most, under AVX2 for nearly all (docs/design/0011).
//
// Threads share y as a grid of rectangles; each packs what it reads, so there is no barrier, and
// what two of them read is packed twice.  The efficiency offered is a law of the extents, fitted to
// measurements.
#include <algorithm>
#include <optional>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/gemm_f32.h"
#include "ridge/backend/cpu/kernels/matmul_extents.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr size_t kBias = 2, kExtra = 3;
constexpr int64_t kColumnGrain = 16;

// Threads as a grid over the rows and columns of y.
struct Grid {
  int rows = 1, columns = 1;
};

// What the tile reaches of the peak, which is 16 multiply-adds a cycle here; less where two threads
// write parts of one row of c (their prefetchers fetch each other's lines).
struct TileShares {
  double alone, shared_rows;
};
constexpr TileShares kAvx512{0.91, 0.86}, kAvx2{0.99, 0.97};
// Cycles of one core for a number of a or b that is packed, for one of c that is added to.
constexpr double kPack = 0.35, kUpdate = 0.3;
constexpr int64_t kBlockDepth = 256, kBlockColumns = 384;

// Of the slowest thread of a grid (measured on Zen 4, for AVX2 on Zen 5).
double Cycles(const MatmulExtents& e, const Grid& grid, Instructions vectors) {
  const auto rows = static_cast<double>(CeilDiv(e.m, grid.rows));
  const int64_t run = CeilDiv(CeilDiv(e.n, kColumnGrain), grid.columns) * kColumnGrain;
  const auto columns = static_cast<double>(run), depth = static_cast<double>(e.k);
  const TileShares& tile = vectors == Instructions::kAvx512 ? kAvx512 : kAvx2;
  const double share = grid.columns > 1 ? tile.shared_rows : tile.alone;
  const double pack_a = GemmF32PacksA(!e.transpose_a, vectors) ? kPack : 0;
  return rows * columns * depth / (16 * share) +
         rows * depth * pack_a * static_cast<double>(CeilDiv(run, kBlockColumns)) +
         columns * depth * kPack +
         rows * columns * kUpdate * static_cast<double>(CeilDiv(e.k, kBlockDepth));
}

Grid BestGrid(const MatmulExtents& e, int threads, Instructions vectors) {
  Grid best{threads, 1};
  for (int columns = 2; columns <= threads; ++columns) {
    const Grid grid{threads / columns, columns};
    if (threads % columns == 0 && Cycles(e, grid, vectors) < Cycles(e, best, vectors)) best = grid;
  }
  return best;
}

// Of the peak of all threads.
double Efficiency(const MatmulExtents& e, int threads, Instructions vectors) {
  const double work =
      static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k) / 16 / threads;
  return work / Cycles(e, BestGrid(e, threads, vectors), vectors);
}

class MatmulF32Kernel : public HostKernel<MatmulF32Kernel> {
 public:
  MatmulF32Kernel(const OpCall& call, int threads, Instructions vectors)
      : e_(*MatmulExtentsOf(call)),
        grid_(BestGrid(e_, threads, vectors)),
        threads_(threads),
        has_bias_(call.has_input(kBias)),
        has_extra_(call.has_input(kExtra)),
        relu_(call.text("epilogue").ends_with("relu")) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads, Instructions vectors) {
    const MatmulF32Kernel kernel(call, threads, vectors);
    return threads * kernel.Scratch();
  }

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      const Range rows = PartOf(e_.m, grid_.rows, part / grid_.columns);
      const Range columns = PartOf(e_.n, grid_.columns, part % grid_.columns, kColumnGrain);
      if (rows.begin == rows.end || columns.begin == columns.end) return;
      RunGemmF32(Share(b, rows, columns), static_cast<float*>(b.workspace) + part * Scratch());
    });
    return Status();
  }

 private:
  int64_t Scratch() const {
    const int64_t columns = CeilDiv(CeilDiv(e_.n, kColumnGrain), grid_.columns) * kColumnGrain;
    return RoundUpFloats(GemmF32Scratch(columns, e_.k));
  }

  GemmF32 Share(const KernelBuffers& b, Range rows, Range columns) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const int64_t at = rows.begin * e_.n + columns.begin;
    MatrixF32 left{in(0), e_.k, 1}, right{in(1), e_.n, 1};
    if (e_.transpose_a) left = {in(0), 1, e_.m};
    if (e_.transpose_b) right = {in(1), 1, e_.k};
    left.data += rows.begin * left.row;
    right.data += columns.begin * right.col;
    return {.m = rows.end - rows.begin,
            .n = columns.end - columns.begin,
            .k = e_.k,
            .a = left,
            .b = right,
            .c = static_cast<float*>(b.outputs[0]) + at,
            .c_row = e_.n,
            .extra = has_extra_ ? in(kExtra) + at : nullptr,
            .bias = has_bias_ ? in(kBias) + columns.begin : nullptr,
            .relu = relu_};
  }

  const MatmulExtents e_;
  const Grid grid_;
  const int threads_;
  const bool has_bias_, has_extra_, relu_;
};

const char* Refuse(const CandidateQuery& q) {
  if (q.cpu.instructions.vectors < Instructions::kAvx2) return refusal::kInstructions;
  if (!MatmulExtentsOf(q.call)) return refusal::kRank;
  const std::string& steps = q.call.text("epilogue");
  const bool taken = steps.empty() || steps == "add" || steps == "relu" || steps == "add,relu";
  return taken ? nullptr : refusal::kEpilogue;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return MatmulF32Kernel::WorkspaceFloats(q.call, q.threads(), q.cpu.instructions.vectors) * 4;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  candidates.Add(Efficiency(*MatmulExtentsOf(q.call), q.threads(), q.cpu.instructions.vectors));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<MatmulF32Kernel>(q.call, q.threads(), q.cpu.instructions.vectors));
}

}  // namespace

KernelDef MatmulF32KernelDef() {
  return {.name = "cpu.matmul_f32",
          .ops = {"matmul"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .refuse = Refuse,
          .in_place = false,
          .workspace_bytes = WorkspaceBytes,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
