// farthest_points and ball_query: a sample a task, or a center; distances in double.
//
// The order of operations is the reference's, so the indices are: one that is off takes other
// points.  The convolutions after them take a hundred times as long.
#include <algorithm>
#include <limits>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

template <typename T>
double SquaredDistance(const T* a, const T* b, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) {
    const double along = static_cast<double>(a[d]) - static_cast<double>(b[d]);
    sum += along * along;
  }
  return sum;
}

template <typename T>
class FarthestPointsKernel : public HostKernel<FarthestPointsKernel<T>> {
 public:
  FarthestPointsKernel(const OpCall& call, int threads)
      : samples_(call.inputs[0].dims[0]),
        points_(call.inputs[0].dims[1]),
        width_(call.inputs[0].dims[2]),
        count_(call.integer("count")),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      double* nearest = static_cast<double*>(b.workspace) + part * points_;
      const Range range = PartOf(samples_, threads_, part);
      for (int64_t sample = range.begin; sample < range.end; ++sample) {
        Choose(static_cast<const T*>(b.inputs[0]) + sample * points_ * width_, nearest,
               static_cast<int64_t*>(b.outputs[0]) + sample * count_);
      }
    });
    return Status();
  }

 private:
  // `nearest`: the squared distance of each point to those chosen so far.
  void Choose(const T* cloud, double* nearest, int64_t* chosen) const {
    std::fill_n(nearest, points_, std::numeric_limits<double>::infinity());
    int64_t next = 0;
    for (int64_t n = 0; n < count_; ++n) {
      chosen[n] = next;
      const T* last = cloud + next * width_;
      int64_t farthest = 0;
      for (int64_t i = 0; i < points_; ++i) {
        const double to_last = SquaredDistance(cloud + i * width_, last, width_);
        if (to_last < nearest[i]) nearest[i] = to_last;
        if (nearest[i] > nearest[farthest]) farthest = i;
      }
      next = farthest;
    }
  }

  const int64_t samples_, points_, width_, count_;
  const int threads_;
};

template <typename T>
class BallQueryKernel : public HostKernel<BallQueryKernel<T>> {
 public:
  BallQueryKernel(const OpCall& call, int threads)
      : points_(call.inputs[0].dims[1]),
        width_(call.inputs[0].dims[2]),
        samples_(call.inputs[1].dims[0]),
        centers_(call.inputs[1].dims[1]),
        count_(call.integer("count")),
        squared_radius_(call.number("radius") * call.number("radius")),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    ParallelFor(threads_, samples_ * centers_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t center = begin; center < end; ++center) {
        Fill(static_cast<const T*>(b.inputs[0]) + center / centers_ * points_ * width_,
             static_cast<const T*>(b.inputs[1]) + center * width_,
             static_cast<int64_t*>(b.outputs[0]) + center * count_);
      }
    });
    return Status();
  }

 private:
  void Fill(const T* cloud, const T* center, int64_t* group) const {
    int64_t found = 0;
    for (int64_t i = 0; i < points_ && found < count_; ++i) {
      if (SquaredDistance(cloud + i * width_, center, width_) <= squared_radius_)
        group[found++] = i;
    }
    std::fill(group + found, group + count_, found == 0 ? 0 : group[0]);
  }

  const int64_t points_, width_, samples_, centers_, count_;
  const double squared_radius_;
  const int threads_;
};

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return q.threads() * q.call.inputs[0].dims[1] * static_cast<int64_t>(sizeof(double));
}

}  // namespace

KernelDef FarthestPointsKernelDef() {
  return {.name = "cpu.farthest_points",
          .ops = {"farthest_points"},
          .takes_empty = true,
          .dtypes = Reals::dtypes(),
          .workspace_bytes = WorkspaceBytes,
          .make = MakeOfElement<FarthestPointsKernel, Reals>};
}

KernelDef BallQueryKernelDef() {
  return {.name = "cpu.ball_query",
          .ops = {"ball_query"},
          .takes_empty = true,
          .dtypes = Reals::dtypes(),
          .make = MakeOfElement<BallQueryKernel, Reals>};
}

}  // namespace ridge::cpu
