// top_k: for each line a heap of the k best so far, the worst of them on top, in the workspace.
//
// Most elements lose against the top at once, so a line costs little more than reading it; the heap
// is sorted at the end.  The order is total (value, then index): the answer is the reference's.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

using TopKElements = Elements<float, double, int64_t, int32_t>;

// One line of x, and which of two of its elements comes first.
template <typename T>
class Line {
 public:
  Line(const T* x, int64_t stride, bool largest) : x_(x), stride_(stride), largest_(largest) {}

  T At(int64_t k) const { return x_[k * stride_]; }

  bool operator()(int64_t p, int64_t q) const {
    const T a = At(p), b = At(q);
    if constexpr (std::is_floating_point_v<T>) {
      const bool a_nan = std::isnan(a), b_nan = std::isnan(b);
      if (a_nan != b_nan) return largest_ ? a_nan : b_nan;
    }
    if (a > b) return largest_;
    if (a < b) return !largest_;
    return p < q;
  }

 private:
  const T* x_;
  int64_t stride_;
  bool largest_;
};

template <typename T>
class TopKKernel : public HostKernel<TopKKernel<T>> {
 public:
  TopKKernel(const OpCall& call, int threads)
      : from_(ViewAxis(call.inputs[0].dims, CallAxis(call))),
        k_(call.integer("k")),
        largest_(call.integer("largest") != 0),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const int64_t lines = from_.outer * from_.inner;
    ForEachPart(threads_, [&](int part) {
      int64_t* heap = static_cast<int64_t*>(b.workspace) + part * k_;
      const Range range = PartOf(lines, threads_, part);
      for (int64_t line = range.begin; line < range.end; ++line) RunLine(b, line, heap);
    });
    return Status();
  }

 private:
  void RunLine(const KernelBuffers& b, int64_t number, int64_t* heap) const {
    if (k_ == 0) return;
    const int64_t o = number / from_.inner, i = number % from_.inner;
    const T* x = static_cast<const T*>(b.inputs[0]) + from_.Index(o, 0, i);
    const Line<T> line(x, from_.inner, largest_);
    std::iota(heap, heap + k_, 0);
    std::make_heap(heap, heap + k_, line);
    for (int64_t j = k_; j < from_.extent; ++j) {
      if (!line(j, heap[0])) continue;
      std::pop_heap(heap, heap + k_, line);
      heap[k_ - 1] = j;
      std::push_heap(heap, heap + k_, line);
    }
    std::sort_heap(heap, heap + k_, line);
    auto* values = static_cast<T*>(b.outputs[0]);
    auto* indices = static_cast<int64_t*>(b.outputs[1]);
    for (int64_t n = 0; n < k_; ++n) {
      const int64_t at = (o * k_ + n) * from_.inner + i;
      values[at] = line.At(heap[n]);
      indices[at] = heap[n];
    }
  }

  const AxisView from_;
  const int64_t k_;
  const bool largest_;
  const int threads_;
};

int64_t WorkspaceBytes(const CandidateQuery& q) { return q.threads() * q.call.integer("k") * 8; }

}  // namespace

KernelDef TopKKernelDef() {
  return {.name = "cpu.top_k",
          .ops = {"top_k"},
          .takes_empty = true,
          .dtypes = TopKElements::dtypes(),
          .workspace_bytes = WorkspaceBytes,
          .make = MakeOfElement<TopKKernel, TopKElements>};
}

}  // namespace ridge::cpu
