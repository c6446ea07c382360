// One OpenMP team for all kernels, ours and oneDNN's.
//
// A region with another thread count makes libgomp dissolve its team, which takes 60 to 180 us.  So
// every region has the backend's thread count, and small work opens no region.
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

// Makes the calling thread's team; kernels for `threads` threads may run only on this thread.
// oneDNN's primitives split their work for the team that they were created for: in a smaller team,
// shares would be skipped, or waited for forever.
// Each thread is pinned to its own core if the team has all cores of the process; an unpinned team
// loses milliseconds per region when other programs are on the machine (measured with
// three of them: 10.8 ms a step of cnn, batch 64; pinned 2.1 ms).  The user's OMP_PROC_BIND wins.
// Fails with kInvalidArgument when OMP_THREAD_LIMIT is below `threads`, with kDevice when the
// runtime gives fewer for another reason.
Status MakeTeam(int threads);

// Calls f(part) for part in [0, parts); one part opens no region.  f may depend only on `part`, so
// the result does not depend on the thread.  f must not throw.
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
