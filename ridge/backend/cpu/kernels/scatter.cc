// scatter: replacing for every dtype, combining for f64 and f32.
//
// As scatter_add, it has no atomics: each part owns columns of y, or rows when rows are short,
// copies them from x and walks all indices in order.  So the last update stays, and sums have one
// order, whatever the number of threads.
#include <cmath>
#include <cstring>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/index_place.h"
#include "ridge/backend/cpu/kernels/target_share.h"

namespace ridge::cpu {
namespace {

// Combines `bytes` bytes of y with those of an update.
using CombineFn = void (*)(std::byte* y, const std::byte* update, int64_t bytes);

template <typename T>
T Added(T y, T u) {
  return y + u;
}
template <typename T>
T Multiplied(T y, T u) {
  return y * u;
}
template <typename T>
T Larger(T y, T u) {
  return u > y || std::isnan(u) ? u : y;
}
template <typename T>
T Smaller(T y, T u) {
  return u < y || std::isnan(u) ? u : y;
}

template <typename T, T (*kCombine)(T, T)>
void CombineRun(std::byte* y, const std::byte* update, int64_t bytes) {
  auto* to = reinterpret_cast<T*>(y);
  const auto* from = reinterpret_cast<const T*>(update);
  for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof(T)); ++i)
    to[i] = kCombine(to[i], from[i]);
}

void Replace(std::byte* y, const std::byte* update, int64_t bytes) {
  std::memcpy(y, update, static_cast<size_t>(bytes));
}

template <typename T>
CombineFn FloatCombine(const std::string& reduction) {
  if (reduction == "add") return CombineRun<T, Added<T>>;
  if (reduction == "mul") return CombineRun<T, Multiplied<T>>;
  if (reduction == "max") return CombineRun<T, Larger<T>>;
  return CombineRun<T, Smaller<T>>;
}

// nullptr: not here.
CombineFn CombineOf(const OpCall& call) {
  const std::string& reduction = call.text("reduction");
  const DType dtype = call.inputs[0].dtype;
  if (reduction == "none") return Replace;
  if (dtype == DType::kF32) return FloatCombine<float>(reduction);
  return dtype == DType::kF64 ? FloatCombine<double>(reduction) : nullptr;
}

class ScatterKernel : public HostKernel<ScatterKernel> {
 public:
  ScatterKernel(const OpCall& call, int threads)
      : view_(ViewAxis(call.inputs[0].dims, 0)),
        count_(call.inputs[1].elements()),
        size_(BytesPerElement(call.inputs[0].dtype)),
        index_type_(call.inputs[1].dtype),
        combine_(CombineOf(call)),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      const auto [rows, columns] = ShareOfTarget(view_, threads_, part);
      if (b.outputs[0] != b.inputs[0]) Copy(b, rows, columns);
      Update(b, rows, columns);
    });
    return Status();
  }

 private:
  void Copy(const KernelBuffers& b, Range rows, Range columns) const {
    const auto* x = static_cast<const std::byte*>(b.inputs[0]);
    auto* y = static_cast<std::byte*>(b.outputs[0]);
    const int64_t row = view_.inner * size_, width = (columns.end - columns.begin) * size_;
    if (width == row) {
      Replace(y + rows.begin * row, x + rows.begin * row, (rows.end - rows.begin) * row);
      return;
    }
    const int64_t begin = columns.begin * size_;
    for (int64_t k = rows.begin; k < rows.end; ++k)
      Replace(y + k * row + begin, x + k * row + begin, width);
  }

  void Update(const KernelBuffers& b, Range rows, Range columns) const {
    const auto* updates = static_cast<const std::byte*>(b.inputs[2]);
    auto* y = static_cast<std::byte*>(b.outputs[0]);
    const int64_t begin = columns.begin * size_, width = (columns.end - columns.begin) * size_;
    const int64_t row = view_.inner * size_;
    for (int64_t n = 0; n < count_; ++n) {
      const int64_t place = PlaceOf(index_type_, b.inputs[1], n, view_.extent);
      if (place < rows.begin || place >= rows.end) continue;
      combine_(y + place * row + begin, updates + n * row + begin, width);
    }
  }

  const AxisView view_;
  const int64_t count_, size_;
  const DType index_type_;
  const CombineFn combine_;
  const int threads_;
};

const char* Refuse(const CandidateQuery& q) {
  return CombineOf(q.call) == nullptr ? refusal::kDType : nullptr;
}

}  // namespace

KernelDef ScatterKernelDef() {
  return {.name = "cpu.scatter",
          .ops = {"scatter"},
          .takes_empty = true,
          .refuse = Refuse,
          .make = MakeKernel<ScatterKernel>};
}

}  // namespace ridge::cpu
