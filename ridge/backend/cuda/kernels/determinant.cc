// det and cofactor: a block decomposes a matrix in its workspace, in double, by LU with complete
// pivoting as graph/ops/shared/lu.h has it; cofactors are solved for a column a thread.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kMostMatrixBytes = int64_t{1} << 26;  // of workspace, unless one matrix has more
constexpr int64_t kMostOrder = 16384;

constexpr std::string_view kLuText = R"cuda(
struct Pivot { double size; int place; };
struct LargerPivot {
  RIDGE_FUNCTION Pivot operator()(Pivot a, Pivot b) const {
    if (a.size == b.size) return a.place < b.place ? a : b;
    return b.size > a.size ? b : a;
  }
};
RIDGE_FUNCTION void Swap(double* p, int a, int b) {
  const double kept = p[a];
  p[a] = p[b];
  p[b] = kept;
}
// lu [n, n] of x[rows, cols]; returns the sign of both permutations.
RIDGE_FUNCTION double BlockDecompose(const $T* x, double* lu, int* rows, int* cols,
                                     Pivot* scratch) {
  for (int e = threadIdx.x; e < $n * $n; e += $threads) lu[e] = (double)Load(x, e);
  for (int i = threadIdx.x; i < $n; i += $threads) rows[i] = cols[i] = i;
  __syncthreads();
  double sign = 1;
  for (int k = 0; k < $n; ++k) {
    const int left = $n - k;
    Pivot pivot = {-1.0, k * $n + k};
    for (int e = threadIdx.x; e < left * left; e += $threads) {
      const int place = (k + e / left) * $n + k + e % left;
      const Pivot other = {fabs(lu[place]), place};
      pivot = LargerPivot()(pivot, other);
    }
    pivot = Tile<1, $threads, true>::BlockJoin(pivot, scratch, LargerPivot());
    const int row = pivot.place / $n, col = pivot.place % $n;
    if (row != k)
      for (int j = threadIdx.x; j < $n; j += $threads) Swap(lu, row * $n + j, k * $n + j);
    __syncthreads();
    if (col != k)
      for (int i = threadIdx.x; i < $n; i += $threads) Swap(lu, i * $n + col, i * $n + k);
    if (threadIdx.x == 0) {
      const int kept_row = rows[row], kept_col = cols[col];
      rows[row] = rows[k];
      rows[k] = kept_row;
      cols[col] = cols[k];
      cols[k] = kept_col;
    }
    sign = (row != k) == (col != k) ? sign : -sign;
    __syncthreads();
    const double divisor = lu[k * $n + k];
    if (divisor == 0) break;  // all that is left is 0
    for (int i = k + 1 + threadIdx.x; i < $n; i += $threads) lu[i * $n + k] /= divisor;
    __syncthreads();
    for (int e = threadIdx.x; e < (left - 1) * (left - 1); e += $threads) {
      const int i = k + 1 + e / (left - 1), j = k + 1 + e % (left - 1);
      lu[i * $n + j] -= lu[i * $n + k] * lu[k * $n + j];
    }
    __syncthreads();
  }
  return sign;
}

RIDGE_KERNEL void $name(const $T* x, $T* y, double* workspace) {
  __shared__ Pivot scratch[$threads];
  double* const lu = workspace + (i64)blockIdx.x * $doubles;
  double* const solved = lu + $n * $n;
  int* const rows = (int*)(solved + $n * $n);
  int* const cols = rows + $n;
  for (i64 matrix = blockIdx.x; matrix < $matrices; matrix += gridDim.x) {
    const i64 first = matrix * ($n * $n);
    double product = BlockDecompose(x + first, lu, rows, cols, scratch);
    for (int k = 0; k < $pivots; ++k) product *= lu[k * $n + k];
    $body
    __syncthreads();
  }
}
)cuda";

constexpr const char* kDetBody = "if (threadIdx.x == 0) Store(y, matrix, product);";

// Column j of L^-1 P, then adj(U) times it, without dividing by the last pivot.
constexpr std::string_view kCofactorBody = R"cuda(
    for (int j = threadIdx.x; j < $n; j += $threads) {
      double* const z = solved + j;
      for (int i = 0; i < $n; ++i) {
        double sum = rows[i] == j ? 1 : 0;
        for (int k = 0; k < i; ++k) sum -= lu[i * $n + k] * z[k * $n];
        z[i * $n] = sum;
      }
      const double last = lu[$n * $n - 1], tail = z[($n - 1) * $n];
      for (int i = $n - 2; i >= 0; --i) {
        double sum = last * z[i * $n] - lu[i * $n + $n - 1] * tail;
        for (int k = i + 1; k < $n - 1; ++k) sum -= lu[i * $n + k] * z[k * $n];
        z[i * $n] = sum / lu[i * $n + i];
      }
      for (int i = 0; i < $n; ++i)
        Store(y, first + (i64)j * $n + cols[i], product == 0 ? 0.0 : product * z[i * $n]);
    })cuda";

const char* WriteDeterminant(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const int64_t n = x.dims.back();
  if (n > kMostOrder) return refusal::kSize;
  const bool det = op.name == "det";
  const int64_t matrices = ElementCount(Dims(x.dims.begin(), x.dims.end() - 2));
  const int64_t doubles = RoundUp(2 * n * n + n, 32);
  const int threads = ThreadsForRow(n * n);
  TextValues values = {{"T", StorageType(x.dtype)},
                       {"n", std::to_string(n)},
                       {"threads", std::to_string(threads)},
                       {"name", op.name},
                       {"doubles", std::to_string(std::max<int64_t>(doubles, 1))},
                       {"matrices", std::to_string(matrices)},
                       {"pivots", std::to_string(det ? n : n - 1)}};
  values.emplace_back("body", det ? kDetBody : FillText(kCofactorBody, values));
  text.source = std::string(ReduceTileText()) + FillText(kLuText, values);
  const int64_t most = std::max<int64_t>(kMostMatrixBytes / std::max<int64_t>(doubles * 8, 1), 1);
  const int64_t blocks = std::min(BlocksForRows(matrices), most);
  text.workspace_bytes = RoundUp(blocks * doubles * 8, 256);
  text.launches = {
      {op.name, blocks, threads, {Argument::Input(0), Argument::Output(0), Argument::Workspace()}}};
  return nullptr;
}

}  // namespace

TextKernelDef DeterminantTextKernel() {
  return {.name = "cuda.determinant", .ops = {"det", "cofactor"}, .write = WriteDeterminant};
}

}  // namespace ridge::cuda
