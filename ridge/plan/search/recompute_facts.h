// Live ranges and recomputation candidates of a training step.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/lower/cost_model.h"

namespace ridge {

// A recomputation candidate.
struct RematCandidate {
  ValueId value = kNoValue;
  std::vector<ValueId> sources;  // roots that it is computed from: resident, or kept for it
  int steps = 0;                 // nodes that recompute it
  int64_t kept_bytes = 0;        // of sources that only its recomputation keeps live
  double seconds = 0;
  bool expensive = false;  // products and convolutions may run again for it
  bool is_late = false;    // a variable that it is computed from has its new contents by then
};

// Live ranges are positions in the schedule.  A root is a value that owns its bytes: a read of a
// view counts as a read of its root.
class RecomputeFacts {
 public:
  RecomputeFacts(const Graph& graph, const CostModel& nominal);

  ValueId RootOf(ValueId id) const { return roots_[static_cast<size_t>(id)]; }
  // Whether its bytes are scratch, which the plan may reuse: not those of a variable's new value,
  // which overwrites the old one.
  bool IsScratch(ValueId root) const {
    return graph_.value(root).kind == ValueKind::kResult && !is_update_[static_cast<size_t>(root)];
  }
  int64_t Bytes(ValueId id) const { return graph_.type(id).bytes(); }

  size_t values() const { return first_.size(); }  // of the graph
  int places() const { return static_cast<int>(order_.size()); }
  int peak() const { return peak_; }  // the first place at which most bytes are live
  // By root; -1 when no node touches it.  last() is places() for roots that outlive the step.
  int first(ValueId root) const { return first_[static_cast<size_t>(root)]; }
  int last(ValueId root) const { return last_[static_cast<size_t>(root)]; }
  int last_early(ValueId root) const { return last_early_[static_cast<size_t>(root)]; }
  int first_late(ValueId root) const { return first_late_[static_cast<size_t>(root)]; }
  const std::vector<bool>& late_nodes() const { return late_; }  // after the peak, by NodeId

  // Whether it is resident after the peak: kept for other nodes, or recomputed itself.
  bool IsResident(ValueId id) const;

  // By value; without those whose sources would keep as many bytes as they free.  With `expensive`
  // also those that take a product or a convolution.
  std::vector<RematCandidate> Candidates(bool expensive) const;
  // Whether recomputing `candidate` recomputes this input of it, too, rather than keeping it.
  bool IsRecomputedFor(const RematCandidate& candidate, ValueId input) const;

 private:
  void MeasureLives();
  void FindPeak();
  void MarkReaders();
  bool MayBeCandidate(ValueId root) const;
  std::optional<RematCandidate> CandidateOf(ValueId root, bool expensive) const;
  void AddStep(ValueId id, RematCandidate& candidate) const;
  void AddSource(ValueId root, RematCandidate& candidate) const;
  double StepSeconds(ValueId id) const;
  double PassedOnSeconds(ValueId id, ValueId reader) const;
  double Seconds(int64_t bytes) const {
    return static_cast<double>(bytes) / device_.memory_bytes_per_s;
  }

  const Graph& graph_;
  const CostModel& nominal_;
  const DeviceFacts& device_;
  std::vector<NodeId> order_;
  std::vector<ValueId> roots_;                // by value
  std::vector<int> first_, last_;             // by root
  std::vector<int> last_early_, first_late_;  // by root: up to the peak, and readers after it
  std::vector<bool> late_;
  std::vector<bool> is_update_;          // by value
  std::vector<NodeId> first_late_node_;  // by root: of the readers after the peak
  std::vector<NodeId> updated_by_;       // by value: what gives a variable its new contents
  int peak_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace ridge
