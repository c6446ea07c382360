// One OpenMP team for all kernels, ours and oneDNN's.
//
// Opening a region with another number of threads makes libgomp dissolve its team, 60 to 180 us
// each time.  So every region has the backend's thread count, and small work opens no region.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "ridge/core/status.h"

namespace ridge::cpu {

// Sets the calling thread's team size for a scope: oneDNN reads it at creation and at execution.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) {
    if (before_ != threads) omp_set_num_threads(threads);
    changed_ = before_ != threads;
  }
  ~TeamSize() {
    if (changed_) omp_set_num_threads(before_);
  }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  const int before_;
  bool changed_ = false;
};

// Makes the calling thread's team; kernels for `threads` run on this thread alone.  Primitives of
// oneDNN deal their work to the team that they were made for: in a smaller one, shares would be
// left out or waited for without end.
// Each thread is pinned to a core of its own, when the team has all cores of the process; an
// unpinned team loses milliseconds a region when other programs are on the machine (measured with
// three of them: 10.8 ms a step of cnn, batch 64; pinned 2.1 ms).  The user's OMP_PROC_BIND wins.
// Fails with kInvalidArgument when OMP_THREAD_LIMIT is below `threads`, with kDevice when the
// runtime gives fewer for another reason.
Status MakeTeam(int threads);

// Calls f(part) for part in [0, parts).  With one part there is no region.  Which thread runs a
// part does not change the result: f may only use `part`.  f must not throw.
template <typename F>
void ForEachPart(int parts, const F& f) {
  if (parts == 1) {
    f(0);
    return;
  }
  const TeamSize team(parts);
#pragma omp parallel
  {
    const int members = omp_get_num_threads();
    for (int part = omp_get_thread_num(); part < parts; part += members) f(part);
  }
}

struct Range {
  int64_t begin = 0, end = 0;
};

// Part `part` of [0, count) cut into `parts` runs whose borders are multiples of `grain`.
inline Range PartOf(int64_t count, int parts, int part, int64_t grain = 1) {
  const int64_t grains = (count + grain - 1) / grain;
  const auto border = [&](int64_t i) { return std::min(count, grains * i / parts * grain); };
  return {border(part), border(part + 1)};
}

// Calls f(begin, end) for the parts of [0, count).
template <typename F>
void ParallelFor(int parts, int64_t count, int64_t grain, const F& f) {
  ForEachPart(parts, [&](int part) {
    const Range range = PartOf(count, parts, part, grain);
    if (range.begin < range.end) f(range.begin, range.end);
  });
}

}  // namespace ridge::cpu
