// cumsum, cumprod and cumprod_grad: f32 and f64, running values kept in double.
//
// Lines beside each other are walked together, a block of columns at a time, so memory is read in
// order; threads share the blocks.
#include <algorithm>
#include <array>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kBlock = 128;
using Block = std::array<double, kBlock>;

// Up to kBlock neighbouring lines: row k, counted from where the scan starts, begins at At(k).
struct Lines {
  int64_t begin, width, extent, stride;
  bool reverse;
  int64_t At(int64_t k) const { return begin + (reverse ? extent - 1 - k : k) * stride; }
};

class ScanWalk {
 public:
  ScanWalk(const OpCall& call, int threads)
      : view_(ViewAxis(call.inputs[0].dims, CallAxis(call))),
        reverse_(call.integer("reverse") != 0),
        exclusive_(call.integer("exclusive") != 0),
        threads_(threads) {}

  bool exclusive() const { return exclusive_; }

  template <typename F>
  void ForEachBlock(const F& f) const {
    const int64_t blocks = CeilDiv(view_.inner, kBlock);
    ParallelFor(threads_, view_.outer * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t column = n % blocks * kBlock;
        f(Lines{view_.Index(n / blocks, 0, column), std::min(kBlock, view_.inner - column),
                view_.extent, view_.inner, reverse_});
      }
    });
  }

 private:
  const AxisView view_;
  const bool reverse_, exclusive_;
  const int threads_;
};

template <typename T, bool kProduct>
class ScanKernel : public HostKernel<ScanKernel<T, kProduct>> {
 public:
  ScanKernel(const OpCall& call, int threads) : walk_(call, threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* x = static_cast<const T*>(b.inputs[0]);
    auto* y = static_cast<T*>(b.outputs[0]);
    walk_.ForEachBlock([&](const Lines& lines) {
      Block value;
      value.fill(kProduct ? 1 : 0);
      for (int64_t k = 0; k < lines.extent; ++k)
        RunRow(x + lines.At(k), y + lines.At(k), lines.width, value.data());
    });
    return Status();
  }

 private:
  void RunRow(const T* x, T* y, int64_t width, double* value) const {
    for (int64_t i = 0; i < width; ++i) {
      const double next = kProduct ? value[i] * x[i] : value[i] + x[i];
      y[i] = static_cast<T>(walk_.exclusive() ? value[i] : next);
      value[i] = next;
    }
  }

  const ScanWalk walk_;
};

// As the reference: the products of what comes before, then back with what comes after.
template <typename T>
class CumprodGradKernel : public HostKernel<CumprodGradKernel<T>> {
 public:
  CumprodGradKernel(const OpCall& call, int threads) : walk_(call, threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* x = static_cast<const T*>(b.inputs[0]);
    const auto* dy = static_cast<const T*>(b.inputs[1]);
    auto* dx = static_cast<T*>(b.outputs[0]);
    walk_.ForEachBlock([&](const Lines& lines) {
      Block value;
      value.fill(1);
      for (int64_t k = 0; k < lines.extent; ++k) {
        const int64_t at = lines.At(k);
        for (int64_t i = 0; i < lines.width; ++i) {
          double& before = value[static_cast<size_t>(i)];
          dx[at + i] = static_cast<T>(before);
          before *= x[at + i];
        }
      }
      value.fill(0);
      for (int64_t k = lines.extent; k-- > 0;) {
        const int64_t at = lines.At(k);
        RowBack(x + at, dy + at, dx + at, lines.width, value.data());
      }
    });
    return Status();
  }

 private:
  void RowBack(const T* x, const T* dy, T* dx, int64_t width, double* after) const {
    const bool exclusive = walk_.exclusive();
    for (int64_t i = 0; i < width; ++i) {
      const double sum = after[i] + (exclusive ? 0 : dy[i]);
      dx[i] = static_cast<T>(dx[i] * sum);
      after[i] = x[i] * sum + (exclusive ? dy[i] : 0);
    }
  }

  const ScanWalk walk_;
};

template <typename T>
using SumKernel = ScanKernel<T, /*kProduct=*/false>;
template <typename T>
using ProductKernel = ScanKernel<T, /*kProduct=*/true>;

template <template <typename> typename K>
KernelDef DefOf(const char* op) {
  return {.name = "cpu.scan",
          .ops = {op},
          .takes_empty = true,
          .dtypes = Reals::dtypes(),
          .one_dtype = true,
          .make = MakeOfElement<K, Reals>};
}

}  // namespace

KernelDef CumsumKernelDef() { return DefOf<SumKernel>("cumsum"); }
KernelDef CumprodKernelDef() { return DefOf<ProductKernel>("cumprod"); }
KernelDef CumprodGradKernelDef() { return DefOf<CumprodGradKernel>("cumprod_grad"); }

}  // namespace ridge::cpu
