// matmul in f64.  Threads share the rows of all products, or the columns where rows are few.
#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/gemm_f64.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge::cpu {
namespace {

constexpr size_t kBias = 2, kFirstExtra = 3;

// One product y[m, n] = a[m, k] b[k, n] for each of `starts`.
struct Products {
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col;
  struct Start {
    int64_t a, b;
  };
  std::vector<Start> starts;
};

Products ProductsOf(const OpCall& call) {
  const Dims &a = call.inputs[0].dims, &b = call.inputs[1].dims, &y = call.outputs[0].dims;
  const bool ta = call.integer("transpose_a") != 0, tb = call.integer("transpose_b") != 0;
  const int64_t a_inner = a.back(), b_inner = b.back();
  Products p{.m = y[y.size() - 2],
             .n = y.back(),
             .k = ta ? a[a.size() - 2] : a_inner,
             .a_row = ta ? 1 : a_inner,
             .a_col = ta ? a_inner : 1,
             .b_row = tb ? 1 : b_inner,
             .b_col = tb ? b_inner : 1,
             .starts = {}};
  const Dims batch(y.begin(), y.end() - 2), a_batch(a.begin(), a.end() - 2),
      b_batch(b.begin(), b.end() - 2);
  if (ElementCount(b_batch) == 1 && a_batch == batch && !ta) {  // one product over all rows
    p.m *= ElementCount(batch);
    p.starts = {{0, 0}};
    return p;
  }
  p.starts.resize(static_cast<size_t>(ElementCount(batch)));
  ForEachStrided(batch, BroadcastStrides(a_batch, batch), 0, [&](int64_t i, int64_t at) {
    p.starts[static_cast<size_t>(i)].a = at * p.m * p.k;
  });
  ForEachStrided(batch, BroadcastStrides(b_batch, batch), 0, [&](int64_t i, int64_t at) {
    p.starts[static_cast<size_t>(i)].b = at * p.k * p.n;
  });
  return p;
}

class MatmulF64Kernel : public HostKernel<MatmulF64Kernel> {
 public:
  MatmulF64Kernel(const OpCall& call, int threads)
      : p_(ProductsOf(call)),
        has_bias_(call.has_input(kBias)),
        epilogue_(call, kFirstExtra),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto rows = static_cast<int64_t>(p_.starts.size()) * p_.m;
    const bool by_columns = rows < p_.n && rows < 16 * threads_;
    ForEachPart(threads_, [&](int part) {
      double* scratch = static_cast<double*>(b.workspace) + part * kGemmScratch;
      const Range columns = by_columns ? PartOf(p_.n, threads_, part, 8) : Range{0, p_.n};
      const Range own = by_columns ? Range{0, rows} : PartOf(rows, threads_, part);
      for (int64_t r = own.begin; r < own.end;) {  // rows of one product at a time
        const int64_t end = std::min(own.end, (r / p_.m + 1) * p_.m);
        RunRows(b, {r, end}, columns, scratch);
        r = end;
      }
    });
    return Status();
  }

 private:
  void RunRows(const KernelBuffers& b, Range rows, Range columns, double* scratch) const {
    const auto& start = p_.starts[static_cast<size_t>(rows.begin / p_.m)];
    const int64_t width = columns.end - columns.begin;
    auto* y = static_cast<double*>(b.outputs[0]) + rows.begin * p_.n + columns.begin;
    const double* a_data = static_cast<const double*>(b.inputs[0]) + start.a;
    const double* b_data = static_cast<const double*>(b.inputs[1]) + start.b;
    RunGemm({.m = rows.end - rows.begin,
             .n = width,
             .k = p_.k,
             .a = {a_data + rows.begin % p_.m * p_.a_row, p_.a_row, p_.a_col},
             .b = {b_data + columns.begin * p_.b_col, p_.b_row, p_.b_col},
             .c = y,
             .c_row = p_.n},
            scratch);
    if (!has_bias_ && epilogue_.empty()) return;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      double* row = static_cast<double*>(b.outputs[0]) + r * p_.n;
      if (has_bias_) {
        const auto* bias = static_cast<const double*>(b.inputs[kBias]);
        for (int64_t j = columns.begin; j < columns.end; ++j) row[j] += bias[j];
      }
      epilogue_.Apply(b.inputs.data(), r * p_.n + columns.begin, r * p_.n + columns.end,
                      static_cast<double*>(b.outputs[0]));
    }
  }

  const Products p_;
  const bool has_bias_;
  const EpilogueF64 epilogue_;
  const int threads_;
};

int64_t WorkspaceBytes(const CandidateQuery& q) { return q.threads() * kGemmScratch * 8; }

}  // namespace

KernelDef MatmulF64KernelDef() {
  return {.name = "cpu.matmul_f64",
          .ops = {"matmul"},
          .dtypes = {DType::kF64},
          .in_place = false,
          .workspace_bytes = WorkspaceBytes,
          .make = MakeKernel<MatmulF64Kernel>};
}

}  // namespace ridge::cpu
