// Block sizes and the ways to share a product are those of oneDNN 3.2 (src/cpu/x64/gemm): blocks
// of a and b are packed by each thread, or of a once for all threads; small products and those of
// few rows or columns are not packed.
#include "ridge/backend/cpu/gemm_buffers.h"

#include <malloc.h>

#include <algorithm>
#include <vector>

#include "oneapi/dnnl/dnnl.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kFloat = 4;

struct Blocks {
  int64_t row_unit, column_unit;  // of the tile in registers
  int64_t rows, columns, depth;   // of a packed block, at most
  int64_t whole_depth;            // up to which the depth is not cut
  static constexpr int64_t kSmallDepth = 48, kColumnsOfSmallDepth = 24;
};

Blocks BlocksOf(DType dtype, Instructions vectors) {
  if (dtype == DType::kBF16) return {48, 8, 9984, 384, 768, 384};
  switch (vectors) {
    case Instructions::kAvx512:
      return {48, 8, 9984, 384, 384, 384};
    case Instructions::kAvx2:
      return {24, 4, 10000, 384, 192, 256};
    case Instructions::kSse4:
      break;
  }
  return {16, 4, 4096, 96, 256, 256};  // 8 rows with SSE4.1, 16 with AVX
}

// Threads over the rows and columns of c.
struct Grid {
  int rows = 1, columns = 1;
};

// One thread's buffers and those of the whole team.
class Packing {
 public:
  Packing(const GemmExtents& e, DType dtype, Instructions vectors)
      : e_(e), blocks_(BlocksOf(dtype, vectors)), element_(dtype == DType::kBF16 ? 2 : 4) {}

  // Of a thread that multiplies m x n.  Where one block holds all columns, a is packed a strip at a
  // time, always to the same place.
  int64_t Alone(int64_t m, int64_t n) const {
    const int64_t rows = n <= Columns(n) ? blocks_.row_unit : Rows(m);
    return (rows + Columns(n)) * Depth() * element_ + 4 * kPage +
           (blocks_.row_unit + Columns(n)) * kFloat;
  }

  // a packed once, b by each of `threads`.
  int64_t SharedA(int threads) const {
    const int64_t band = CeilDiv(e_.n, threads);
    const int64_t rows = std::min(Rows(e_.m) * std::min(threads, 10),
                                  std::max(RoundUp(e_.m, blocks_.row_unit), Rows(e_.m)));
    return rows * Depth() * element_ + kPage +
           threads * ((Columns(band) * Depth() + rows + Columns(band)) * element_ + 3 * kPage);
  }

  // Each thread packs for its part of c; the last in a row takes what does not divide.
  int64_t Of(const Grid& grid) const {
    const int64_t m = e_.m / grid.rows + grid.rows, n = e_.n / grid.columns + grid.columns;
    return int64_t{grid.rows} * grid.columns * Alone(std::min(m, e_.m), std::min(n, e_.n));
  }

  // Sums of parts of a long inner extent.
  int64_t PartialSums(int threads) const {
    if (element_ == kFloat || e_.m > 768 || e_.n > 768 || e_.k < 2048) return 0;
    return threads * (e_.m + 512) * e_.n * kFloat;
  }

 private:
  int64_t Rows(int64_t m) const {
    return RoundUp(std::min(std::max(m, blocks_.row_unit), blocks_.rows), blocks_.row_unit);
  }
  int64_t Columns(int64_t n) const {
    const int64_t most =
        e_.k < Blocks::kSmallDepth ? Blocks::kColumnsOfSmallDepth : blocks_.columns;
    return RoundUp(std::min(std::max(n, blocks_.column_unit), most), blocks_.column_unit);
  }
  int64_t Depth() const {
    if (e_.k <= blocks_.whole_depth) return std::max<int64_t>(128, e_.k);
    return e_.k < 2 * blocks_.depth ? (e_.k + 1) / 2 : blocks_.depth;
  }

  const GemmExtents e_;
  const Blocks blocks_;
  const int64_t element_;
};

// Whether AVX2 multiplies without packing.  With AVX-512 the leading dimensions matter as well, so
// the larger of both ways counts there.
bool SurelyUnpacked(const GemmExtents& e, DType dtype, int threads, Instructions vectors) {
  if (dtype != DType::kF32 || vectors != Instructions::kAvx2) return false;
  const int64_t long_run = int64_t{threads} * 378;
  if (1.0 / static_cast<double>(e.m) + 1.0 / static_cast<double>(e.n) >= 0.0038) return true;
  if (e.k >= long_run && ((e.m <= 378 && e.n <= 378) || e.m >= long_run)) return false;
  if (e.m <= 128 && e.n <= 128) return true;
  if (e.transposed_b) return e.n <= threads || e.k <= threads;
  return e.n <= 16 * threads || e.k <= 2 * threads || (e.m <= 64 && e.n >= 16 * threads);
}

// A strip of a for each thread, and sums of parts of a long inner extent where m and n give the
// threads too little.
int64_t UnpackedBytes(const GemmExtents& e, int threads) {
  constexpr int64_t kStrip = (384 * 48 + 64 + 48) * kFloat + kPage;
  const bool few = e.m <= int64_t{threads} * 64 && e.n <= int64_t{threads} * 128;
  const int64_t sums = few ? (threads - 1) * RoundUp(e.m + 16, 16) * (e.n + 1) * kFloat : 0;
  return threads * kStrip + sums + kPage + int64_t{threads} * 64;
}

bool SharesA(const GemmExtents& e, int threads, Instructions vectors) {
  const bool avx512 = vectors == Instructions::kAvx512;
  return e.m >= 1000 && e.n >= (avx512 ? 68 * threads : 4000);
}

// How f32 is shared out where each thread packs for itself.
Grid GridOf(const GemmExtents& e, int threads, Instructions vectors) {
  constexpr int64_t kBlock = 384;
  const bool tall = vectors != Instructions::kAvx512 && e.n <= kBlock && e.m >= threads * kBlock;
  const bool both = (e.n > threads * kBlock || e.n <= threads * kBlock / 2) && e.m >= 2 * kBlock;
  if (tall || !both) {
    const bool by_rows = e.m > e.n && (e.m >= int64_t{threads} * 16 || e.n < threads);
    return by_rows ? Grid{threads, 1} : Grid{1, threads};
  }
  Grid grid{1, threads};
  while (grid.columns % 2 == 0 && grid.rows < 4 && e.m / grid.rows >= 2 * kBlock &&
         (e.n / threads > kBlock || e.n / grid.columns <= kBlock / 2)) {
    grid.rows *= 2;
    grid.columns /= 2;
  }
  return grid;
}

int64_t PackedBytes(const GemmExtents& e, DType dtype, int threads, Instructions vectors) {
  const Packing packing(e, dtype, vectors);
  if (threads == 1) return packing.Alone(e.m, e.n);
  const int64_t team = RoundUp(int64_t{threads} * 192, kPage) + kPage;
  if (SharesA(e, threads, vectors)) return team + packing.SharedA(threads);
  if (dtype == DType::kF32) return team + packing.Of(GridOf(e, threads, vectors));
  return team + packing.PartialSums(threads) +
         std::max({packing.Of({1, threads}), packing.Of({threads, 1}), packing.SharedA(threads)});
}

int64_t BytesWith(const GemmExtents& e, DType dtype, int threads, Instructions vectors) {
  const int64_t unpacked = UnpackedBytes(e, threads);
  if (e.m == 1 || e.n == 1) return unpacked + (e.m + e.n) * (threads - 1) * kFloat;
  if (SurelyUnpacked(e, dtype, threads, vectors)) return unpacked;
  return std::max(unpacked, PackedBytes(e, dtype, threads, vectors));
}

}  // namespace

bool AllocatesInCalls(const std::string& implementation) {
  return implementation.find("gemm:") != std::string::npos;
}

int64_t GemmBufferBytes(const GemmExtents& extents, DType dtype, int threads,
                        Instructions vectors) {
  int64_t most = 0;
  for (int used = 1; used <= threads; ++used)
    most = std::max(most, BytesWith(extents, dtype, used, vectors));
  return most;
}

int64_t GemmBufferBytesAlone(const GemmExtents& extents, DType dtype, int threads,
                             Instructions vectors) {
  return threads * BytesWith(extents, dtype, 1, vectors);
}

void PrepareGemm() {
  static const bool done = [] {
    constexpr int kLarge = 64 * 1024;
    (void)mallopt(M_MMAP_THRESHOLD, kLarge);
    constexpr int64_t kSide = 32;
    const std::vector<float> a(kSide * kSide, 0.0F);
    std::vector<float> c = a;
    return dnnl_sgemm('N', 'N', kSide, kSide, kSide, 1, a.data(), kSide, a.data(), kSide, 0,
                      c.data(), kSide) == dnnl_success;
  }();
  (void)done;  // the kernel's own call reports errors
}

}  // namespace ridge::cpu
