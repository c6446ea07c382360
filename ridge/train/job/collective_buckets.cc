#include "ridge/train/job/collective_buckets.h"

#include <map>

#include "ridge/plan/mesh_nodes.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr int64_t kBucketBytes = 25 << 20;  // PyTorch's bucket_cap_mb

class Bucketing {
 public:
  explicit Bucketing(const StepPlan& step)
      : step_(step), uses_(step), open_of_(step.values.size()) {}

  void Read(const PlannedNode& node) {
    for (const int input : node.inputs) {
      if (input < 0) continue;
      if (const std::string& kind = open_of_[Root(input)]; !kind.empty()) open_.erase(kind);
    }
  }

  void Add(int n) {
    const PlannedNode& node = step_.nodes[static_cast<size_t>(n)];
    const bool gathers = IsGatherOfVariable(node);
    const std::string kind =
        (gathers ? "variable " : "") + node.op + " " + node.call.attrs.text("axis");
    auto at = open_.find(kind);
    if (at == open_.end() || buckets_[at->second].bytes >= kBucketBytes) {
      buckets_.emplace_back();
      at = open_.insert_or_assign(kind, buckets_.size() - 1).first;
      buckets_.back().at = n;
    }
    CollectiveBucket& bucket = buckets_[at->second];
    bucket.nodes.push_back(n);
    bucket.bytes += CollectiveBytes(node);
    if (gathers) return;
    bucket.at = n;
    open_of_[Root(node.outputs[0])] = kind;
  }

  std::vector<CollectiveBucket> Take() { return std::move(buckets_); }

 private:
  bool IsGatherOfVariable(const PlannedNode& node) const {
    return node.def == &AllGatherOp() && step_.values[Root(node.inputs[0])].persistent_index >= 0;
  }
  size_t Root(int value) const { return static_cast<size_t>(uses_.bytes().RootOf(value)); }

  const StepPlan& step_;
  const StepUses uses_;
  std::vector<CollectiveBucket> buckets_;
  std::map<std::string, size_t> open_;  // by kind: the bucket that takes more
  std::vector<std::string> open_of_;    // by value that owns bytes: the kind whose bucket brings it
};

}  // namespace

std::vector<CollectiveBucket> BucketCollectives(
    const StepPlan& step, const std::function<bool(const PlannedNode&)>& takes) {
  Bucketing bucketing(step);
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    bucketing.Read(step.nodes[n]);
    if (takes(step.nodes[n])) bucketing.Add(static_cast<int>(n));
  }
  return bucketing.Take();
}

}  // namespace ridge
