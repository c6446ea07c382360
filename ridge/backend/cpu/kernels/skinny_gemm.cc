// matmul in f32 where one extent is small: few columns of dot products, or few rows, or a short
// inner dimension.  oneDNN's kernels have the columns in their lanes and take the extents as they
// come; ten columns leave six of sixteen lanes idle.
//
// Threads share the samples in all three, as the kernels of images do: what a core has written it
// reads again itself.  Where a sum runs over the samples, each thread has a part of it, and the
// parts are added in order.
#include "ridge/backend/cpu/kernels/skinny_gemm.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/matmul_extents.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kSkinny = kSkinnyDotsColumns;
constexpr int64_t kWide = 128;   // lanes, or an inner dimension in lanes
constexpr int64_t kEnough = 16;  // of the other extent, to pay for starting
constexpr size_t kBias = 2, kExtra = 3;
constexpr int64_t kFewestRows = 4;

// Which of the three a product is.
bool IsDots(const MatmulExtents& e) {
  return !e.transpose_a && e.transpose_b && e.n <= kSkinny && e.k >= kWide && e.m >= kFewestRows;
}
// The gradients of what IsDots() multiplies.
bool HasFewRows(const MatmulExtents& e) {
  return e.transpose_a && !e.transpose_b && e.m <= kSkinny && e.k >= kEnough && e.n >= kWide;
}
bool HasShortSums(const MatmulExtents& e) {
  return !e.transpose_a && !e.transpose_b && e.k <= kSkinny && e.m >= kEnough && e.n >= kWide;
}

class SkinnyDotsKernel : public HostKernel<SkinnyDotsKernel> {
 public:
  SkinnyDotsKernel(const MatmulExtents& e, int threads) : e_(e), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      const Range rows = PartOf(e_.m, threads_, part);
      RunSkinnyDots(
          {.rows = rows.end - rows.begin,
           .columns = e_.n,
           .inner = e_.k,
           .a = {static_cast<const float*>(b.inputs[0]) + rows.begin * e_.k, e_.k},
           .b = {static_cast<const float*>(b.inputs[1]), e_.k},
           .bias = b.inputs.size() > kBias ? static_cast<const float*>(b.inputs[kBias]) : nullptr,
           .y = static_cast<float*>(b.outputs[0]) + rows.begin * e_.n,
           .y_row = e_.n},
          static_cast<float*>(b.workspace) + part * SkinnyDotsFloats());
    });
    return Status();
  }

 private:
  const MatmulExtents e_;
  const int threads_;
};

class ShortSumsKernel : public HostKernel<ShortSumsKernel> {
 public:
  // `adds`: y begins with what the epilogue adds, which may share bytes with y.
  ShortSumsKernel(const MatmulExtents& e, bool adds, int threads)
      : e_(e), adds_(adds), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      const Range rows = PartOf(e_.m, threads_, part);
      if (rows.begin == rows.end) return;
      float* y = static_cast<float*>(b.outputs[0]) + rows.begin * e_.n;
      if (adds_ && b.inputs[kExtra] != b.outputs[0]) {
        std::copy_n(static_cast<const float*>(b.inputs[kExtra]) + rows.begin * e_.n,
                    (rows.end - rows.begin) * e_.n, y);
      }
      RunSkinnySums({.rows = rows.end - rows.begin,
                     .columns = e_.n,
                     .inner = e_.k,
                     .a = static_cast<const float*>(b.inputs[0]) + rows.begin * e_.k,
                     .a_row = e_.k,
                     .a_col = 1,
                     .b = {static_cast<const float*>(b.inputs[1]), e_.n},
                     .c = y,
                     .c_row = e_.n,
                     .add = adds_});
    });
    return Status();
  }

 private:
  const MatmulExtents e_;
  const bool adds_;
  const int threads_;
};

// Each thread sums the rows of a and b that it has made, or that it will read next, itself: what
// two cores read is slow to write again.  The parts are added in order.
class FewRowsKernel : public HostKernel<FewRowsKernel> {
 public:
  FewRowsKernel(const MatmulExtents& e, bool adds, int threads)
      : e_(e), adds_(adds), threads_(threads) {}

  static int64_t PartFloats(const MatmulExtents& e) { return RoundUpFloats(e.m * e.n); }

  Status Run(const KernelBuffers& b) {
    auto* parts = static_cast<float*>(b.workspace);
    ForEachPart(threads_, [&](int part) { SumPart(b, part, parts + part * PartFloats(e_)); });
    const auto* extra = adds_ ? static_cast<const float*>(b.inputs[kExtra]) : nullptr;
    auto* y = static_cast<float*>(b.outputs[0]);
    ParallelFor(threads_, e_.m * e_.n, 16, [&](int64_t begin, int64_t end) {
      AddSkinnyParts({parts + begin, PartFloats(e_), threads_},
                     extra == nullptr ? nullptr : extra + begin, end - begin, y + begin);
    });
    return Status();
  }

 private:
  void SumPart(const KernelBuffers& b, int part, float* sums) const {
    const Range inner = PartOf(e_.k, threads_, part);
    if (inner.begin == inner.end) return std::fill_n(sums, e_.m * e_.n, 0.0F), void();
    RunSkinnySums({.rows = e_.m,
                   .columns = e_.n,
                   .inner = inner.end - inner.begin,
                   .a = static_cast<const float*>(b.inputs[0]) + inner.begin * e_.m,
                   .a_row = 1,
                   .a_col = e_.m,
                   .b = {static_cast<const float*>(b.inputs[1]) + inner.begin * e_.n, e_.n},
                   .c = sums,
                   .c_row = e_.n});
  }

  const MatmulExtents e_;
  const bool adds_;
  const int threads_;
};

// What the epilogue adds, where y may begin with it.
bool Adds(const OpCall& call, const MatmulExtents& e) {
  return !IsDots(e) && call.text("epilogue") == "add";
}

const char* Refuse(const CandidateQuery& q) {
  const std::optional<MatmulExtents> e = MatmulExtentsOf(q.call);
  if (!e || (!IsDots(*e) && !HasFewRows(*e) && !HasShortSums(*e))) return refusal::kNoGain;
  if (!IsDots(*e) && q.call.has_input(kBias)) return refusal::kNoGain;
  return q.call.text("epilogue").empty() || Adds(q.call, *e) ? nullptr : refusal::kEpilogue;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  const MatmulExtents e = *MatmulExtentsOf(q.call);
  if (HasFewRows(e)) return q.threads() * FewRowsKernel::PartFloats(e) * 4;
  return IsDots(e) ? q.threads() * SkinnyDotsFloats() * 4 : 0;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  KernelChoice& choice = candidates.Add();
  if (Adds(q.call, *MatmulExtentsOf(q.call))) choice.in_place = {{0, static_cast<int>(kExtra)}};
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  const MatmulExtents e = *MatmulExtentsOf(q.call);
  const bool adds = Adds(q.call, e);
  std::unique_ptr<Kernel> kernel;
  if (IsDots(e)) {
    kernel = std::make_unique<SkinnyDotsKernel>(e, q.threads());
  } else if (HasFewRows(e)) {
    kernel = std::make_unique<FewRowsKernel>(e, adds, q.threads());
  } else {
    kernel = std::make_unique<ShortSumsKernel>(e, adds, q.threads());
  }
  return kernel;
}

}  // namespace

KernelDef SkinnyGemmKernelDef() {
  return {.name = "cpu.narrow_matmul",
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
