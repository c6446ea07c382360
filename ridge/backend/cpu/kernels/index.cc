// gather and scatter_add, every dtype.
//
// scatter_add has no atomics: each part owns columns of the table, or rows when rows are short, and
// walks all indices in order; so sums have one order whatever the number of threads.  Narrow types
// are summed in a table of a wider one in the workspace and rounded once, as the reference does.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/kernels/index_place.h"
#include "ridge/backend/cpu/kernels/target_share.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

class GatherKernel : public HostKernel<GatherKernel> {
 public:
  GatherKernel(const OpCall& call, int threads)
      : view_(ViewAxis(call.inputs[0].dims, CallAxis(call))),
        count_(call.inputs[1].elements()),
        index_type_(call.inputs[1].dtype),
        dtype_(call.inputs[0].dtype),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
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

// What elements of T are summed in.  Unsigned sums have the bits of signed ones, and overflow is
// defined.
template <typename T>
using SumOf =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, uint64_t, int64_t>,
                       std::conditional_t<sizeof(T) == 8, double, float>>;

template <typename T>
class ScatterAddKernel : public HostKernel<ScatterAddKernel<T>> {
 public:
  ScatterAddKernel(const OpCall& call, int threads)
      : view_(ViewOf(call)),
        count_(call.inputs[0].elements()),
        index_type_(call.inputs[0].dtype),
        dtype_(call.outputs[0].dtype),
        threads_(threads) {}

  static int64_t WorkspaceBytes(const OpCall& call) {
    return kDirect ? 0 : call.outputs[0].elements() * int64_t{sizeof(Sum)};
  }

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      const auto [rows, columns] = ShareOfTarget(view_, threads_, part);
      for (int64_t o = 0; o < view_.outer; ++o) RunOuter(b, o, rows, columns);
    });
    return Status();
  }

 private:
  using Sum = SumOf<T>;
  static constexpr bool kDirect = sizeof(T) == sizeof(Sum);  // sums are in the output

  static AxisView ViewOf(const OpCall& call) {
    const TensorType& y = call.outputs[0];
    return ViewAxis(y.dims, *NormalizeAxis(call.integer("axis"), y.rank(), call.where));
  }

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
      for (int64_t i = 0; i < width; ++i) to[i] += static_cast<Sum>(Number(from[i]));
    }
    if constexpr (!kDirect) Store(table, rows, columns, start, b.outputs[0]);
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

constexpr int kUpdates = 1;

int64_t WorkspaceOfSums(const CandidateQuery& q) {
  return Numbers::Call(q.call.inputs[kUpdates].dtype,
                       [&]<typename T>() { return ScatterAddKernel<T>::WorkspaceBytes(q.call); });
}

Result<std::unique_ptr<Kernel>> MakeScatterAdd(const CandidateQuery& q, const KernelChoice&) {
  return Numbers::Call(q.call.inputs[kUpdates].dtype, [&]<typename T>() {
    return std::unique_ptr<Kernel>(std::make_unique<ScatterAddKernel<T>>(q.call, q.threads()));
  });
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
          .dtypes = Numbers::dtypes(),
          .typed_by = kUpdates,
          .workspace_bytes = WorkspaceOfSums,
          .make = MakeScatterAdd};
}

}  // namespace ridge::cpu
