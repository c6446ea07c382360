// Reuse distance: a read hits a cache if fewer bytes than the cache holds were touched since the
// last touch of its operand (least recently used is evicted first; Mattson et al., Evaluation
// Techniques for Storage Hierarchies, 1970).  A node streams all its operands at once, so the
// distance counts the bytes of the earlier node and of all nodes between.
#include "ridge/plan/cost/reuse.h"

#include <algorithm>
#include <vector>

#include "ridge/plan/uses.h"

namespace ridge {
namespace {

class ReuseWalk {
 public:
  ReuseWalk(const StepPlan& step, int64_t cache_bytes)
      : step_(step), cache_bytes_(cache_bytes), bytes_(step) {
    last_.assign(step.values.size(), -1);
  }

  // Visits the next node; returns the bytes of its operands that were evicted.
  int64_t ColdBytes(const PlannedNode& node) {
    int64_t cold = 0;
    for (const int value : node.inputs) {
      if (value < 0) continue;
      const int64_t last = last_[Root(value)];
      if (last >= 0 && touched_ - last > cache_bytes_) cold += Bytes(value);
    }
    const int64_t before = touched_;
    ForEachValue(node, [&](int value) { touched_ += Bytes(value); });
    ForEachValue(node, [&](int value) { last_[Root(value)] = before; });
    return cold;
  }

 private:
  size_t Root(int value) const { return static_cast<size_t>(bytes_.RootOf(value)); }
  int64_t Bytes(int value) const { return step_.values[static_cast<size_t>(value)].size_bytes; }
  template <typename Visit>
  static void ForEachValue(const PlannedNode& node, const Visit& visit) {
    for (const int value : node.inputs) {
      if (value >= 0) visit(value);
    }
    for (const int value : node.outputs) visit(value);
  }

  const StepPlan& step_;
  const int64_t cache_bytes_;
  const SharedBytes bytes_;
  std::vector<int64_t> last_;  // by root: bytes touched before the node that touched it last
  int64_t touched_ = 0;
};

}  // namespace

double ColdReadSeconds(const CostModel& device, int64_t cache_bytes, const StepPlan& step,
                       const std::vector<double>& node_s) {
  const DeviceFacts& facts = device.facts();
  ReuseWalk walk(step, cache_bytes);
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    const int64_t cold = walk.ColdBytes(node);
    if (cold == 0) continue;
    const int64_t bytes = node.cost.bytes_read + node.cost.bytes_written;
    const double moved =
        static_cast<double>(cold) / facts.memory_bytes_per_s +
        static_cast<double>(std::max<int64_t>(0, bytes - cold)) / device.BytesPerS(bytes);
    seconds +=
        std::max(0.0, moved + facts.launch_s - node_s[n]) * static_cast<double>(RunsOf(step, n));
  }
  return seconds;
}

}  // namespace ridge
