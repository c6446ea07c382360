#include "ridge/train/job/mesh_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ridge/plan/choose/communication.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/plan/uses.h"
#include "ridge/train/job/collective_buckets.h"

namespace ridge {
namespace {

CollectiveKind KindOf(const OpDef& op) {
  if (&op == &AllReduceOp()) return CollectiveKind::kAllReduce;
  if (&op == &ReduceScatterOp()) return CollectiveKind::kReduceScatter;
  return &op == &AllGatherOp() ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
}

bool IsInLine(const PlannedNode& node) {
  return IsMeshCollective(node) && node.call.text("axis") == kTensorAxis;
}

std::vector<AxisTime> AxesOf(const Mesh& mesh, const DeviceGroup& all) {
  std::vector<AxisTime> axes;
  int64_t stride = mesh.devices();
  for (const MeshAxis& axis : mesh.axes) {
    stride /= axis.size;
    axes.push_back({axis.name, axis.size, StridedGroup(all, stride, axis.size)});
  }
  return axes;
}

// One run of a step: the kernels on one queue, the collectives beside them on another.
class StepClock {
 public:
  explicit StepClock(const StepPlan& step)
      : step_(step), uses_(step), ready_s_(step.values.size()) {
    node_s_ = PlannedNodeSeconds(step);
    behind_s_.assign(step.nodes.size() + 1, 0);
    for (size_t n = step.nodes.size(); n-- > 0;)
      behind_s_[n] = behind_s_[n + 1] + (IsMeshCollective(step.nodes[n]) ? 0 : node_s_[n]);
  }

  void RunKernel(size_t n) {
    WaitFor(step_.nodes[n]);
    now_s_ += node_s_[n];
    Finish(step_.nodes[n], now_s_);
  }
  void RunInLine(size_t n, double seconds) {
    WaitFor(step_.nodes[n]);
    now_s_ += seconds;
    Finish(step_.nodes[n], now_s_);
  }
  void RunBeside(const CollectiveBucket& bucket, double alone_s) {
    double start_s = link_free_s_;
    for (const int n : bucket.nodes) start_s = std::max(start_s, ReadyOf(NodeAt(n)));
    link_free_s_ =
        start_s + SecondsBesideKernels(alone_s, behind_s_[static_cast<size_t>(bucket.at)]);
    for (const int n : bucket.nodes) Finish(NodeAt(n), link_free_s_);
  }

  double kernel_s() const { return behind_s_[0]; }
  double end_s() const { return std::max(now_s_, link_free_s_); }

 private:
  const PlannedNode& NodeAt(int n) const { return step_.nodes[static_cast<size_t>(n)]; }
  double ReadyOf(const PlannedNode& node) const {
    double ready_s = 0;
    for (const int input : node.inputs) {
      if (input >= 0) ready_s = std::max(ready_s, ready_s_[Root(input)]);
    }
    return ready_s;
  }
  void WaitFor(const PlannedNode& node) { now_s_ = std::max(now_s_, ReadyOf(node)); }
  void Finish(const PlannedNode& node, double at_s) {
    for (const int output : node.outputs) {
      if (output >= 0) ready_s_[Root(output)] = std::max(ready_s_[Root(output)], at_s);
    }
  }
  size_t Root(int value) const { return static_cast<size_t>(uses_.bytes().RootOf(value)); }

  const StepPlan& step_;
  StepUses uses_;
  std::vector<double> node_s_, behind_s_;  // behind: of a node's kernels and all later ones
  std::vector<double> ready_s_;            // by value that owns bytes
  double now_s_ = 0, link_free_s_ = 0;
};

size_t SumOf(const MeshStep& step, const std::string& op, const std::string& axis) {
  const auto found =
      std::find_if(step.collectives.begin(), step.collectives.end(),
                   [&](const CollectiveSum& sum) { return sum.op == op && sum.axis == axis; });
  RIDGE_CHECK(found != step.collectives.end(), "a collective that the partition counted");
  return static_cast<size_t>(found - step.collectives.begin());
}

// Adds `runs` runs of a step to `times`.
class StepAdder {
 public:
  StepAdder(const MeshJob& job, size_t index, int64_t runs, const MeshLinks& links,
            MeshTimes& times)
      : step_(job.program.steps[index]),
        counted_(job.steps[index]),
        mesh_(job.mesh),
        runs_(runs),
        links_(links),
        times_(times),
        clock_(step_),
        sums_s_(counted_.collectives.size()) {}

  Status Add() {
    const std::vector<CollectiveBucket> buckets = BucketCollectives(
        step_, [](const PlannedNode& node) { return IsMeshCollective(node) && !IsInLine(node); });
    std::map<int, std::vector<const CollectiveBucket*>> leaving;
    for (const CollectiveBucket& bucket : buckets) leaving[bucket.at].push_back(&bucket);
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      RIDGE_RETURN_IF_ERROR(AddNode(n));
      for (const CollectiveBucket* bucket : leaving[static_cast<int>(n)])
        RIDGE_RETURN_IF_ERROR(AddBeside(*bucket));
    }
    AddTotals();
    return Status();
  }

 private:
  Status AddNode(size_t n) {
    const PlannedNode& node = step_.nodes[n];
    if (!IsMeshCollective(node)) {
      clock_.RunKernel(n);
      times_.flops += runs_ * node.cost.flops;
    } else if (IsInLine(node)) {
      RIDGE_ASSIGN_OR_RETURN(const double alone_s, Count(node, CollectiveBytes(node)));
      clock_.RunInLine(n, alone_s);
      in_line_s_ += alone_s;
      AxisOf(node).exposed_s += static_cast<double>(runs_) * alone_s;
    }
    return Status();
  }

  Status AddBeside(const CollectiveBucket& bucket) {
    const PlannedNode& node = step_.nodes[static_cast<size_t>(bucket.at)];
    RIDGE_ASSIGN_OR_RETURN(const double alone_s, Count(node, bucket.bytes));
    clock_.RunBeside(bucket, alone_s);
    return Status();
  }

  AxisTime& AxisOf(const PlannedNode& node) {
    return times_.axes[static_cast<size_t>(mesh_.Find(node.call.text("axis")))];
  }

  Result<double> Count(const PlannedNode& node, int64_t bytes) {
    AxisTime& axis = AxisOf(node);
    RIDGE_ASSIGN_OR_RETURN(const double alone_s,
                           CollectiveNodeSeconds(node, bytes, axis.group, links_.wire_share));
    axis.busy_s += static_cast<double>(runs_) * alone_s;
    sums_s_[SumOf(counted_, node.op, axis.axis)] += alone_s;
    return alone_s;
  }

  void AddTotals() {
    const auto count = static_cast<double>(runs_);
    const double waited_s = count * (clock_.end_s() - clock_.kernel_s() - in_line_s_);
    for (AxisTime& axis : times_.axes) {
      if (axis.axis != kTensorAxis) axis.exposed_s += std::max(0.0, waited_s);
    }
    times_.kernel_s += count * clock_.kernel_s();
    times_.step_s += count * clock_.end_s();
    times_.sums_s.push_back(std::move(sums_s_));
  }

  const StepPlan& step_;
  const MeshStep& counted_;
  const Mesh& mesh_;
  const int64_t runs_;
  const MeshLinks& links_;
  MeshTimes& times_;
  StepClock clock_;
  std::vector<double> sums_s_;
  double in_line_s_ = 0;
};

}  // namespace

Result<double> CollectiveNodeSeconds(const PlannedNode& node, int64_t bytes,
                                     const DeviceGroup& group, double wire_share) {
  const std::optional<double> seconds =
      CollectiveSeconds(group, KindOf(*node.def), static_cast<double>(bytes) * wire_share);
  if (seconds) return *seconds;
  return InvalidArgument(
      fmt::format("mesh: no rate is known of the link between devices of {}. hint: `ridge devices "
                  "show {}`",
                  group.hardware->id, group.hardware->id));
}

double MeshTimes::mfu(double peak_flops_per_s) const {
  return peak_flops_per_s > 0 ? static_cast<double>(flops) / step_s / peak_flops_per_s : 0;
}

Result<MeshTimes> TimesOfMesh(const MeshJob& job, int64_t accumulate, const MeshLinks& links) {
  MeshTimes times;
  times.axes = AxesOf(job.mesh, links.all);
  for (size_t i = 0; i < job.program.steps.size(); ++i) {
    const int64_t runs = job.program.steps[i].name == "micro" ? accumulate : 1;
    RIDGE_RETURN_IF_ERROR(StepAdder(job, i, runs, links, times).Add());
  }
  if (job.offload) times.step_s = SecondsBesideTransfers(times.step_s, *job.offload);
  return times;
}

}  // namespace ridge
