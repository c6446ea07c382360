// A tensor is [planes, D, H, W, lanes].  Forward runs over slices of outputs; backward adds each dy
// into dx, plane by plane, so the order of the additions does not depend on the threads.  The inner
// loops run over the lanes: one at a time in row-major, which is slow but rare.
#include "ridge/backend/cpu/kernels/pool3d.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ridge/backend/cpu/parallel.h"
#include "ridge/backend/host_kernel.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge::cpu {
namespace {

constexpr size_t kMaxLanes = 16;

struct Pool3d {
  SlidingWindow window;
  int64_t planes = 0;
  int64_t lanes = 1;
  std::vector<float> divisors;  // of avg_pool, for each output of a plane

  int64_t input_plane() const { return window.inputs() * lanes; }
  int64_t output_plane() const { return window.outputs() * lanes; }
};

// Calls f(output) for the outputs of a plane in slices [begin, end).
template <typename F>
void ForEachOutput(const SlidingWindow& window, int64_t begin, int64_t end, const F& f) {
  int64_t at = begin * window.y().output * window.x().output;
  for (int64_t z = begin; z < end; ++z) {
    for (int64_t y = 0; y < window.y().output; ++y) {
      for (int64_t x = 0; x < window.x().output; ++x) f(PoolOutput{at++, 0, z, y, x});
    }
  }
}

// From the first tap to the last: the first of equals wins, and the first NaN beats all.
template <typename Index>
void MaxOutput(const Pool3d& p, const PoolOutput& o, const float* x, float* y, Index* index) {
  std::array<float, kMaxLanes> best;
  std::array<Index, kMaxLanes> winner{};
  best.fill(-std::numeric_limits<float>::infinity());
  bool first = true;
  ForEachPoolTap(p.window, o, [&](int64_t from, int64_t tap) {
    const float* pixel = x + from * p.lanes;
    for (size_t lane = 0; lane < static_cast<size_t>(p.lanes); ++lane) {
      const float v = pixel[lane];
      const bool wins = first || v > best[lane] || (std::isnan(v) && !std::isnan(best[lane]));
      best[lane] = wins ? v : best[lane];
      winner[lane] = wins ? static_cast<Index>(tap) : winner[lane];
    }
    first = false;
  });
  std::copy_n(best.begin(), p.lanes, y + o.at * p.lanes);
  std::copy_n(winner.begin(), p.lanes, index + o.at * p.lanes);
}

void AvgOutput(const Pool3d& p, const PoolOutput& o, const float* x, float* y) {
  std::array<float, kMaxLanes> sum{};
  ForEachPoolTap(p.window, o, [&](int64_t from, int64_t) {
    const float* pixel = x + from * p.lanes;
    for (size_t lane = 0; lane < static_cast<size_t>(p.lanes); ++lane) sum[lane] += pixel[lane];
  });
  for (size_t lane = 0; lane < static_cast<size_t>(p.lanes); ++lane) {
    y[o.at * p.lanes + static_cast<int64_t>(lane)] =
        sum[lane] / p.divisors[static_cast<size_t>(o.at)];
  }
}

template <typename Index>
void MaxGradPlane(const Pool3d& p, const Index* index, const float* dy, float* dx) {
  const WindowAxis &wz = p.window.z(), &wy = p.window.y(), &wx = p.window.x();
  std::fill_n(dx, p.input_plane(), 0.0F);
  ForEachOutput(p.window, 0, wz.output, [&](const PoolOutput& o) {
    for (int64_t lane = 0; lane < p.lanes; ++lane) {
      const auto tap = static_cast<int64_t>(index[o.at * p.lanes + lane]);
      const int64_t z = wz.InputAt(o.z, tap / (wx.kernel * wy.kernel)),
                    y = wy.InputAt(o.y, tap / wx.kernel % wy.kernel),
                    x = wx.InputAt(o.x, tap % wx.kernel);
      if (tap < 0 || !wz.Inside(z) || !wy.Inside(y) || !wx.Inside(x)) continue;
      dx[p.window.InputIndex(z, y, x) * p.lanes + lane] += dy[o.at * p.lanes + lane];
    }
  });
}

void AvgGradPlane(const Pool3d& p, const float* dy, float* dx) {
  std::fill_n(dx, p.input_plane(), 0.0F);
  ForEachOutput(p.window, 0, p.window.z().output, [&](const PoolOutput& o) {
    std::array<float, kMaxLanes> share{};
    for (size_t lane = 0; lane < static_cast<size_t>(p.lanes); ++lane) {
      share[lane] =
          dy[o.at * p.lanes + static_cast<int64_t>(lane)] / p.divisors[static_cast<size_t>(o.at)];
    }
    ForEachPoolTap(p.window, o, [&](int64_t to, int64_t) {
      float* pixel = dx + to * p.lanes;
      for (size_t lane = 0; lane < static_cast<size_t>(p.lanes); ++lane) pixel[lane] += share[lane];
    });
  });
}

// Index: uint8_t or int32_t.
template <typename Index>
class MaxPool3dKernel : public HostKernel<MaxPool3dKernel<Index>> {
 public:
  MaxPool3dKernel(Pool3d pool, bool gradient, int threads)
      : pool_(std::move(pool)), gradient_(gradient), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    if (gradient_) {
      RunGradient(static_cast<const Index*>(b.inputs[0]), static_cast<const float*>(b.inputs[1]),
                  static_cast<float*>(b.outputs[0]));
    } else {
      RunForward(static_cast<const float*>(b.inputs[0]), static_cast<float*>(b.outputs[0]),
                 static_cast<Index*>(b.outputs[1]));
    }
    return Status();
  }

 private:
  void RunForward(const float* x, float* y, Index* index) const {
    const int64_t slices = pool_.window.z().output;
    ParallelFor(threads_, pool_.planes * slices, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t plane = s / slices, slice = s % slices, at = plane * pool_.output_plane();
        ForEachOutput(pool_.window, slice, slice + 1, [&](const PoolOutput& o) {
          MaxOutput(pool_, o, x + plane * pool_.input_plane(), y + at, index + at);
        });
      }
    });
  }
  void RunGradient(const Index* index, const float* dy, float* dx) const {
    ParallelFor(threads_, pool_.planes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t at = plane * pool_.output_plane();
        MaxGradPlane(pool_, index + at, dy + at, dx + plane * pool_.input_plane());
      }
    });
  }

  const Pool3d pool_;
  const bool gradient_;
  const int threads_;
};

class AvgPool3dKernel : public HostKernel<AvgPool3dKernel> {
 public:
  AvgPool3dKernel(Pool3d pool, bool gradient, int threads)
      : pool_(std::move(pool)), gradient_(gradient), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* from = static_cast<const float*>(b.inputs[0]);
    auto* to = static_cast<float*>(b.outputs[0]);
    ParallelFor(threads_, pool_.planes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) RunPlane(plane, from, to);
    });
    return Status();
  }

 private:
  void RunPlane(int64_t plane, const float* from, float* to) const {
    const int64_t in = plane * pool_.input_plane(), out = plane * pool_.output_plane();
    if (gradient_) return AvgGradPlane(pool_, from + out, to + in);
    ForEachOutput(pool_.window, 0, pool_.window.z().output,
                  [&](const PoolOutput& o) { AvgOutput(pool_, o, from + in, to + out); });
  }

  const Pool3d pool_;
  const bool gradient_;
  const int threads_;
};

std::vector<float> Divisors(const OpCall& call, const SlidingWindow& window) {
  std::vector<float> divisors;
  ForEachOutput(window, 0, window.z().output, [&](const PoolOutput& o) {
    divisors.push_back(static_cast<float>(AvgPoolDivisor(call, window, o.z, o.y, o.x)));
  });
  return divisors;
}

}  // namespace

std::unique_ptr<Kernel> MakePool3d(const OpDef& op, const OpCall& call, int64_t lanes,
                                   int threads) {
  const PoolGeometry g = PoolGeometryOf(call);
  const bool gradient = call.attrs.contains("input_dims");
  Pool3d pool{.window = g.window,
              .planes = g.batch * CeilDiv(g.channels, lanes),
              .lanes = lanes,
              .divisors = {}};
  if (op.name.starts_with("avg")) {
    pool.divisors = Divisors(call, g.window);
    return std::make_unique<AvgPool3dKernel>(std::move(pool), gradient, threads);
  }
  if (PoolIndexDType(g) == DType::kU8)
    return std::make_unique<MaxPool3dKernel<uint8_t>>(std::move(pool), gradient, threads);
  return std::make_unique<MaxPool3dKernel<int32_t>>(std::move(pool), gradient, threads);
}

}  // namespace ridge::cpu
