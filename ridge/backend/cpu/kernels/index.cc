// gather and scatter_add, every dtype.
//
// scatter_add has no atomics: each part owns columns of the table, or rows when rows are short, and
// walks all indices in order; so sums have one order whatever the number of threads.  Narrow types
// are summed in a table of a wider one in the workspace and rounded once, as the reference does.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/index_place.h"
#include "ridge/backend/cpu/kernels/target_share.h"

namespace ridge::cpu {
namespace {

AxisView ViewOf(const OpCall& call, const Dims& dims) {
  const int64_t axis = call.integer("axis");
  const auto rank = static_cast<int64_t>(dims.size());
  return ViewAxis(dims, static_cast<int>(axis < 0 ? axis + rank : axis));
}

class GatherKernel : public Kernel {
 public:
  GatherKernel(const OpCall& call, int threads)
      : view_(ViewOf(call, call.inputs[0].dims)),
        count_(call.inputs[1].elements()),
        index_type_(call.inputs[1].dtype),
        dtype_(call.inputs[0].dtype),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto* x = static_cast<const std::byte*>(b.inputs[0]);
    auto* y = static_cast<std::byte*>(b.outputs[0]);
    const int64_t row = view_.inner * BytesPerElement(dtype_);
    ParallelFor(threads_, view_.outer * count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t place = PlaceOf(index_type_, b.inputs[1], r % count_, view_.extent);
        if (place < 0) {
          FillMissing(y + r * row);
        } else {
          CopyRow(x + (r / count_ * view_.extent + place) * row, y + r * row, row);
        }
      }
    });
    return Status();
  }

 private:
  // A number or two moves without a call.
  static void CopyRow(const std::byte* from, std::byte* to, int64_t bytes) {
    if (bytes == 4) {
      std::memcpy(to, from, 4);
    } else if (bytes == 8) {
      std::memcpy(to, from, 8);
    } else {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
  }

  void FillMissing(std::byte* row) const {
    const double missing = IsFloat(dtype_) ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (int64_t i = 0; i < view_.inner; ++i) StoreFromDouble(dtype_, row, i, missing);
  }

  const AxisView view_;
  const int64_t count_;
  const DType index_type_, dtype_;
  const int threads_;
};

// T: the dtype's number; Sum: what it is summed in.
template <typename T, typename Sum>
class ScatterAddKernel : public Kernel {
 public:
  ScatterAddKernel(const OpCall& call, int threads)
      : view_(ViewOf(call, call.outputs[0].dims)),
        count_(call.inputs[0].elements()),
        index_type_(call.inputs[0].dtype),
        dtype_(call.outputs[0].dtype),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    ForEachPart(threads_, [&](int part) {
      const auto [rows, columns] = ShareOfTarget(view_, threads_, part);
      for (int64_t o = 0; o < view_.outer; ++o) RunOuter(b, o, rows, columns);
    });
    return Status();
  }

 private:
  static constexpr bool kDirect = std::is_same_v<T, Sum>;

  void RunOuter(const KernelBuffers& b, int64_t o, Range rows, Range columns) const {
    const auto* updates = static_cast<const T*>(b.inputs[1]) + o * count_ * view_.inner;
    const int64_t start = o * view_.extent * view_.inner, width = columns.end - columns.begin;
    Sum* table = static_cast<Sum*>(kDirect ? b.outputs[0] : b.workspace) + start;
    for (int64_t k = rows.begin; k < rows.end; ++k)
      std::fill_n(table + k * view_.inner + columns.begin, width, Sum());
    for (int64_t n = 0; n < count_; ++n) {
      const int64_t place = PlaceOf(index_type_, b.inputs[0], n, view_.extent);
      if (place < rows.begin || place >= rows.end) continue;
      Sum* to = table + place * view_.inner + columns.begin;
      const T* from = updates + n * view_.inner + columns.begin;
      for (int64_t i = 0; i < width; ++i) to[i] += Widened(from[i]);
    }
    if constexpr (!kDirect) Store(table, rows, columns, start, b.outputs[0]);
  }

  Sum Widened(T x) const {
    if constexpr (std::is_same_v<T, uint16_t>)  // a narrow float
      return dtype_ == DType::kBF16 ? BF16ToFloat(x) : F16ToFloat(x);
    return static_cast<Sum>(x);
  }

  void Store(const Sum* table, Range rows, Range columns, int64_t start, void* y) const {
    for (int64_t k = rows.begin; k < rows.end; ++k) {
      for (int64_t i = columns.begin; i < columns.end; ++i) {
        const int64_t at = k * view_.inner + i;
        StoreFromDouble(dtype_, y, start + at, static_cast<double>(table[at]));
      }
    }
  }

  const AxisView view_;
  const int64_t count_;
  const DType index_type_, dtype_;
  const int threads_;
};

// Bytes of what the dtype is summed in, 0 when that is the output itself.
int64_t SumBytes(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kI64:
      return 0;
    case DType::kBF16:
    case DType::kF16:
      return 4;
    default:
      return 8;
  }
}

std::unique_ptr<Kernel> MakeScatterAdd(const OpCall& call, int threads) {
  switch (call.outputs[0].dtype) {
    case DType::kF64:
      return std::make_unique<ScatterAddKernel<double, double>>(call, threads);
    case DType::kF32:
      return std::make_unique<ScatterAddKernel<float, float>>(call, threads);
    case DType::kBF16:
    case DType::kF16:
      return std::make_unique<ScatterAddKernel<uint16_t, float>>(call, threads);
    case DType::kI64:  // bits of unsigned sums are those of signed ones, and overflow is defined
      return std::make_unique<ScatterAddKernel<uint64_t, uint64_t>>(call, threads);
    case DType::kI32:
      return std::make_unique<ScatterAddKernel<int32_t, int64_t>>(call, threads);
    case DType::kI8:
      return std::make_unique<ScatterAddKernel<int8_t, int64_t>>(call, threads);
    default:
      return std::make_unique<ScatterAddKernel<uint8_t, int64_t>>(call, threads);
  }
}

int64_t ScatterAddWorkspace(const CandidateQuery& q) {
  const TensorType& y = q.call.outputs[0];
  return y.elements() * SumBytes(y.dtype);
}

Result<std::unique_ptr<Kernel>> MakeScatterAddKernel(const CandidateQuery& q, const KernelChoice&) {
  return MakeScatterAdd(q.call, q.threads());
}

}  // namespace

// An empty table or no updates are no special case; calls without outputs do not come here.
KernelDef GatherKernelDef() {
  return {.name = "cpu.gather",
          .ops = {"gather"},
          .takes_empty = true,
          .make = MakeKernel<GatherKernel>};
}

KernelDef ScatterAddKernelDef() {
  return {.name = "cpu.scatter_add",
          .ops = {"scatter_add"},
          .takes_empty = true,
          .dtypes = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI64, DType::kI32,
                     DType::kI8, DType::kU8},
          .typed_by = 1,
          .workspace_bytes = ScatterAddWorkspace,
          .make = MakeScatterAddKernel};
}

}  // namespace ridge::cpu
