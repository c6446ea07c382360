// rotary_embedding: f32 and bf16, computed in f32; tables of bf16 or f32.  Threads share the rows.
#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/dtype.h"
#include "ridge/core/simd_targets.h"
#include "ridge/graph/ops/shared/strided.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/rotary_embedding_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

#ifndef RIDGE_CPU_ROTARY_ROW_
#define RIDGE_CPU_ROTARY_ROW_
namespace ridge::cpu {

// One row of x and its tables; the second numbers of the pairs have theirs `apart` behind.
template <typename T, typename Table>
struct RotaryRow {
  const T* x;
  const Table* cos;
  const Table* sin;
  int64_t cos_apart, sin_apart;
  T* y;
};
using F32Row = RotaryRow<float, float>;
using BF16Row = RotaryRow<uint16_t, uint16_t>;
using BF16RowOfF32Tables = RotaryRow<uint16_t, float>;

}  // namespace ridge::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

// Pairs x[i], x[half + i].
template <typename Row>
void TurnHalves(const Row& row, size_t half) {
  const size_t lanes = hn::Lanes(D());
  for (size_t i = 0; i < half; i += lanes) {
    const size_t n = HWY_MIN(lanes, half - i);
    const V x1 = LoadSome(row.x + i, n), x2 = LoadSome(row.x + half + i, n);
    const V cos1 = LoadSome(row.cos + i, n), sin1 = LoadSome(row.sin + i, n);
    const V cos2 = LoadSome(row.cos + row.cos_apart + i, n);
    const V sin2 = LoadSome(row.sin + row.sin_apart + i, n);
    StoreSome(hn::Sub(hn::Mul(x1, cos1), hn::Mul(x2, sin1)), row.y + i, n);
    StoreSome(hn::Add(hn::Mul(x2, cos2), hn::Mul(x1, sin2)), row.y + half + i, n);
  }
}

void TurnF32(const F32Row& row, size_t half) { TurnHalves(row, half); }
void TurnBF16(const BF16Row& row, size_t half) { TurnHalves(row, half); }
void TurnBF16ByF32(const BF16RowOfF32Tables& row, size_t half) { TurnHalves(row, half); }

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {
namespace {

HWY_EXPORT(TurnF32);
HWY_EXPORT(TurnBF16);
HWY_EXPORT(TurnBF16ByF32);

void TurnHalves(const F32Row& row, size_t half) { HWY_DYNAMIC_DISPATCH(TurnF32)(row, half); }
void TurnHalves(const BF16Row& row, size_t half) { HWY_DYNAMIC_DISPATCH(TurnBF16)(row, half); }
void TurnHalves(const BF16RowOfF32Tables& row, size_t half) {
  HWY_DYNAMIC_DISPATCH(TurnBF16ByF32)(row, half);
}

float ToFloat(float x) { return x; }
float ToFloat(uint16_t x) { return BF16ToFloat(x); }
void Store(float x, float* to) { *to = x; }
void Store(float x, uint16_t* to) { *to = FloatToBF16(x); }

// Pairs x[2i], x[2i + 1]; a table with a number for each pair steps by 1, else by 2.
template <typename T, typename Table>
void TurnNeighbours(const RotaryRow<T, Table>& row, size_t half) {
  const size_t cos_step = row.cos_apart == 0 ? 1 : 2, sin_step = row.sin_apart == 0 ? 1 : 2;
  for (size_t i = 0; i < half; ++i) {
    const float x1 = ToFloat(row.x[2 * i]), x2 = ToFloat(row.x[2 * i + 1]);
    const Table *cos = row.cos + i * cos_step, *sin = row.sin + i * sin_step;
    Store(x1 * ToFloat(cos[0]) - x2 * ToFloat(sin[0]), row.y + 2 * i);
    Store(x2 * ToFloat(cos[row.cos_apart]) + x1 * ToFloat(sin[row.sin_apart]), row.y + 2 * i + 1);
  }
}

// Where row r of x finds its row of a table.
class TableRows {
 public:
  TableRows(const Dims& x, const Dims& table) : rows_(x.begin(), x.end() - 1) {
    const Dims own(table.begin(), table.end() - 1);
    strides_ = BroadcastStrides(own, rows_);
    for (int64_t& stride : strides_) stride *= table.back();
  }

  int64_t At(int64_t r) const {
    int64_t at = 0;
    for (size_t d = rows_.size(); d-- > 0;) {
      at += r % rows_[d] * strides_[d];
      r /= rows_[d];
    }
    return at;
  }

 private:
  Dims rows_, strides_;
};

template <typename T, typename Table>
class RotaryKernel : public HostKernel<RotaryKernel<T, Table>> {
 public:
  RotaryKernel(const OpCall& call, int threads)
      : cos_(call.inputs[0].dims, call.inputs[1].dims),
        sin_(call.inputs[0].dims, call.inputs[2].dims),
        half_(call.inputs[0].dims.back() / 2),
        rows_(call.inputs[0].elements() / (2 * half_)),
        interleaved_(call.integer("interleaved") != 0),
        cos_apart_(Apart(call.inputs[1])),
        sin_apart_(Apart(call.inputs[2])),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    ParallelFor(threads_, rows_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = 2 * half_ * r;
        const RotaryRow<T, Table> row{static_cast<const T*>(b.inputs[0]) + at,
                                      static_cast<const Table*>(b.inputs[1]) + cos_.At(r),
                                      static_cast<const Table*>(b.inputs[2]) + sin_.At(r),
                                      cos_apart_,
                                      sin_apart_,
                                      static_cast<T*>(b.outputs[0]) + at};
        const auto pairs = static_cast<size_t>(half_);
        interleaved_ ? TurnNeighbours(row, pairs) : TurnHalves(row, pairs);
      }
    });
    return Status();
  }

 private:
  // From the number of the first of a pair to that of the second; 0 where they share it.
  int64_t Apart(const TensorType& table) const {
    if (table.dims.back() == half_) return 0;
    return interleaved_ ? 1 : half_;
  }

  const TableRows cos_, sin_;
  const int64_t half_, rows_;
  const bool interleaved_;
  const int64_t cos_apart_, sin_apart_;
  const int threads_;
};

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  if (q.call.inputs[0].dtype == DType::kF32)
    return MakeKernel<RotaryKernel<float, float>>(q, choice);
  if (q.call.inputs[1].dtype == DType::kF32)
    return MakeKernel<RotaryKernel<uint16_t, float>>(q, choice);
  return MakeKernel<RotaryKernel<uint16_t, uint16_t>>(q, choice);
}

const char* RefuseUnequalTables(const CandidateQuery& q) {
  return q.call.inputs[1].dtype == q.call.inputs[2].dtype ? nullptr : refusal::kDType;
}

}  // namespace

KernelDef RotaryEmbeddingKernelDef() {
  return {.name = "cpu.rotary_embedding",
          .ops = {"rotary_embedding"},
          .dtypes = {DType::kF32, DType::kBF16},
          .refuse = RefuseUnequalTables,
          .make = Make};
}

}  // namespace ridge::cpu
#endif
