#include "ridge/plan/region.h"

#include <algorithm>

#include "ridge/plan/program.h"

namespace ridge {
namespace {

class PlaceWalk {
 public:
  explicit PlaceWalk(size_t nodes) : places_(nodes) {
    for (size_t n = 0; n < nodes; ++n) places_[n].first = places_[n].last = static_cast<int>(n);
  }

  void Visit(const Region& region) {
    if (region.kind == Region::Kind::kLoop) VisitLoop(region);
    if (region.kind == Region::Kind::kParallel) VisitParallel(region);
    for (const Region& part : region.parts) Visit(part);
  }

  std::vector<NodePlace> Take() { return std::move(places_); }

 private:
  NodePlace& At(int node) { return places_[static_cast<size_t>(node)]; }

  void VisitLoop(const Region& loop) {
    for (int n = loop.first; n < loop.end; ++n) {
      At(n).trips *= loop.trips;
      At(n).in_loop = true;
    }
    for (const int n : loop.peeled.skipped) {
      At(n).trips -= loop.peeled.every ? loop.trips : 1;
      At(n).skips_first = true;
    }
    for (const int n : loop.once) {
      At(n).trips /= loop.trips;
      At(n).once = true;
    }
    if (!loop.in_step) return;
    // A part runs for one micro-batch after the other.
    for (const Region& part : loop.parts) {
      for (int n = part.first; n < part.end; ++n) {
        At(n).first = part.first;
        At(n).last = part.end - 1;
      }
    }
  }

  void VisitParallel(const Region& parallel) {
    for (size_t s = 0; s < parallel.parts.size(); ++s) {
      const Region& stream = parallel.parts[s];
      for (int n = stream.first; n < stream.end; ++n) {
        At(n).parallel = parallels_;
        At(n).stream = static_cast<int>(s);
        At(n).first = parallel.first;
        At(n).last = parallel.end - 1;
      }
    }
    ++parallels_;
  }

  std::vector<NodePlace> places_;
  int parallels_ = 0;
};

const Region* FindLoop(const Region& region) {
  if (region.kind == Region::Kind::kLoop) return &region;
  for (const Region& part : region.parts) {
    if (const Region* loop = FindLoop(part); loop != nullptr) return loop;
  }
  return nullptr;
}

}  // namespace

std::vector<NodePlace> NodePlaces(const StepPlan& step) {
  PlaceWalk walk(step.nodes.size());
  walk.Visit(step.body);
  return walk.Take();
}

int64_t RunsOf(const StepPlan& step, size_t node) {
  const Region* loop = MicroBatchLoop(step);
  const int n = static_cast<int>(node);
  if (loop == nullptr || !loop->Holds(n)) return 1;
  if (std::binary_search(loop->once.begin(), loop->once.end(), n)) return 1;
  const std::vector<int>& skipped = loop->peeled.skipped;
  if (!std::binary_search(skipped.begin(), skipped.end(), n)) return loop->trips;
  return loop->peeled.every ? 0 : loop->trips - 1;
}

const Region* MicroBatchLoop(const StepPlan& step) { return FindLoop(step.body); }

Region* MicroBatchLoop(StepPlan& step) { return const_cast<Region*>(FindLoop(step.body)); }

bool IsPeeled(const StepPlan& step, int64_t iteration) {
  const Region* loop = MicroBatchLoop(step);
  return loop != nullptr && (iteration == 0 || loop->peeled.every);
}

int FirstWrittenIn(const StepPlan& step, int value) {
  const Region* loop = MicroBatchLoop(step);
  if (loop == nullptr) return -1;
  const auto found = loop->peeled.written_in.find(value);
  return found == loop->peeled.written_in.end() ? -1 : found->second;
}

}  // namespace ridge
