// argmax: rows along the last axis, or columns along any other, of every number dtype.
//
// A row is read in blocks: the largest number of a block is found first (its lanes are
// independent), and only a block that beats the best so far is searched for the place; in f32 for
// the number that is known then.  Columns are
// walked row after row, many at a time, so memory is read in order.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/kernels/reduce_runs.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

template <typename V>
bool IsNan(V x) {
  if constexpr (std::is_floating_point_v<V>) return std::isnan(x);
  return false;
}

// The first of the largest; NaN counts as largest.
template <typename V>
bool Beats(V candidate, V best) {
  return candidate > best || (IsNan(candidate) && !IsNan(best));
}

// Of a longer block the maximum comes cheaper, of a shorter one the place.
constexpr int64_t kLanes = 16, kBlock = 256, kRunBlock = 1024;

// Whether any of the block beats `best`.
template <typename T, typename V>
bool AnyBeats(const T* x, V best) {
  int beats[kLanes] = {};
  for (int64_t i = 0; i < kBlock; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) beats[k] |= !(Number(x[i + k]) <= best);
  }
  int any = 0;
  for (const int lane : beats) any |= lane;
  return any != 0;
}

// The blocks' way, without what a block costs to begin.
template <typename T>
int64_t ShortRowArgmax(const T* x, int64_t count) {
  int64_t place = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (Beats(Number(x[i]), Number(x[place]))) place = i;
  }
  return place;
}

int64_t RowArgmax(const float* x, int64_t count) {
  if (count <= kLanes) return ShortRowArgmax(x, count);
  int64_t place = 0;
  float best = x[0];
  for (int64_t begin = 0; begin < count && !std::isnan(best); begin += kRunBlock) {
    const int64_t end = std::min(count, begin + kRunBlock);
    const auto most = static_cast<float>(ReduceRun(Reduction::kMax, x + begin, end - begin));
    if (most <= best) continue;
    best = most;
    const auto wanted = [most](float v) {
      return v == most || (std::isnan(most) && std::isnan(v));
    };
    place = std::find_if(x + begin, x + end, wanted) - x;
  }
  return place;
}

template <typename T>
int64_t RowArgmax(const T* x, int64_t count) {
  int64_t place = 0;
  auto best = Number(x[0]);
  for (int64_t begin = 0; begin < count && !IsNan(best); begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    if (end - begin == kBlock && !AnyBeats(x + begin, best)) continue;
    for (int64_t i = begin; i < end; ++i) {
      const auto candidate = Number(x[i]);
      if (!Beats(candidate, best)) continue;
      best = candidate;
      place = i;
    }
  }
  return place;
}

// Neighbouring columns of one [extent, inner] matrix.
template <typename T>
void ColumnsArgmax(const T* x, int64_t extent, int64_t inner, int64_t columns, int64_t* y) {
  decltype(Number(T())) best[kBlock];
  for (int64_t c = 0; c < columns; ++c) best[c] = Number(x[c]);
  std::fill_n(y, columns, 0);
  for (int64_t k = 1; k < extent; ++k) {
    const T* row = x + k * inner;
    for (int64_t c = 0; c < columns; ++c) {
      const auto candidate = Number(row[c]);
      if (!Beats(candidate, best[c])) continue;
      best[c] = candidate;
      y[c] = k;
    }
  }
}

template <typename T>
class ArgmaxKernel : public HostKernel<ArgmaxKernel<T>> {
 public:
  ArgmaxKernel(const OpCall& call, int threads)
      : view_(ViewAxis(call.inputs[0].dims, CallAxis(call))), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* x = static_cast<const T*>(b.inputs[0]);
    auto* y = static_cast<int64_t*>(b.outputs[0]);
    const int64_t chunks = CeilDiv(view_.inner, kBlock);
    ParallelFor(threads_, view_.outer * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item)
        RunItem(x, y, item / chunks, item % chunks * kBlock);
    });
    return Status();
  }

 private:
  void RunItem(const T* x, int64_t* y, int64_t outer, int64_t column) const {
    const T* from = x + view_.Index(outer, 0, column);
    int64_t* to = y + outer * view_.inner + column;
    if (view_.inner == 1) {
      *to = RowArgmax(from, view_.extent);
    } else {
      ColumnsArgmax(from, view_.extent, view_.inner, std::min(kBlock, view_.inner - column), to);
    }
  }

  const AxisView view_;
  const int threads_;
};

}  // namespace

KernelDef ArgmaxKernelDef() {
  return {.name = "cpu.argmax",
          .ops = {"argmax"},
          .dtypes = Numbers::dtypes(),
          .make = MakeOfElement<ArgmaxKernel, Numbers>};
}

}  // namespace ridge::cpu
