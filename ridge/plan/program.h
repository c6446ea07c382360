// Program: the planned training job.  A value: printable, comparable, without kernels or memory.
//
// One persistent region (parameters, states, input slots) and several StepPlans over it: `train`
// (or `micro` and `update` when gradients are accumulated) and `eval`.  The arena is the persistent
// region followed by the scratch region; StepPlans run one at a time, so scratch is the largest of
// theirs.  Offsets are from the arena's start, in bytes, multiples of the device's alignment.
// Time inside a StepPlan is an index into its nodes ("step 3"), never seconds.
//
// A StepPlan may run its batch in `slices` equal parts, its in-step micro-batches, one after the
// other: the nodes of its body's loop run on each part of the inputs, those behind the loop once.
// States carry data from one slice to the next, and outputs by sample have a part for each slice;
// each slice overwrites everything else.  Slices that need each other's results run in step: each
// node on all of them before the next one, and every value of the loop has a part for each slice.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/slice_tree.h"
#include "ridge/graph/graph.h"
#include "ridge/lower/kernel_query.h"
#include "ridge/partition/mesh.h"
#include "ridge/partition/split.h"
#include "ridge/plan/region.h"

namespace ridge {

struct PipelineRole;  // pipeline/role.h

// What a byte of the arena is for; the breakdown's keys.
enum class Purpose : uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kWorkspace,
  kInputs,
};
const char* PurposeName(Purpose purpose);  // "parameters"

// The variable of a job that ranks have parts of.
struct WholeVariable {
  TensorType type;
  Init init;
  Split split;
};

// A parameter, state or input slot: allocated for the whole run.
struct PersistentValue {
  std::string name;
  TensorType type;
  // Others: only variables that an optimizer updates, and sums of their gradients.
  LayoutId layout = kRowMajor;
  Purpose purpose = Purpose::kParameters;
  ValueKind kind = ValueKind::kParameter;  // kParameter, kState or kInput
  ValueRole role = ValueRole::kNone;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;       // in its layout
  int slot = 0;                 // inputs: 0 or 1, double buffered
  int64_t slices = 1;           // inputs: how many slices' parts it holds
  bool of_micro_batch = false;  // a state between the stages of a micro batch's step
  int64_t copies = 1;           // of it, side by side in size_bytes
  Init init;                    // parameters and states
  // Of a rank's part, which starts as that part of it, and not as `init`.
  std::optional<WholeVariable> whole = std::nullopt;
  bool on_host = false;  // it rests in the host's memory, beside a device with one of its own

  int64_t copy_bytes() const { return size_bytes / copies; }
};

// In the scratch region, a row-major copy of a variable is followed by the workspace of the kernel
// that makes or reads it.
inline int64_t StagingWorkspaceOffset(const PersistentValue& value, const MemorySpace& memory) {
  return memory.Aligned(value.type.bytes());
}

// Elements of `size_bytes` in this layout: padding counts, which is 0 in every layout.
inline int64_t ElementsIn(LayoutId layout, const TensorType& type, int64_t size_bytes) {
  return layout == kRowMajor ? type.elements() : size_bytes / BytesPerElement(type.dtype);
}

// First and last node (inclusive) during which the bytes must be kept.
struct LiveRange {
  int first = 0;
  int last = 0;
};

// A value of one StepPlan.  Several values may share bytes: views (reshape) and in-place results.
struct PlannedValue {
  std::string name;
  TensorType type;
  LayoutId layout = kRowMajor;
  Purpose purpose = Purpose::kActivations;
  bool persistent = false;  // offset is in the persistent region
  int persistent_index = -1;
  int64_t offset_bytes = -1;
  int64_t size_bytes = 0;  // of a result with slice_bytes: of all slices
  LiveRange live;
  int shares_with = -1;  // index of the value whose bytes it shares, or -1
  bool on_host = false;  // in the host's memory, where kernels of the host reach it
  // Stride between the slices' parts: of an input, of an output by sample, and of what each of the
  // slices in step has.
  int64_t slice_bytes = 0;

  // Of one slice's part.
  int64_t part_bytes() const { return slice_bytes > 0 && !persistent ? slice_bytes : size_bytes; }
};

struct PlannedNode {
  std::string name;
  std::string op;              // "conv", or "reorder"
  const OpDef* def = nullptr;  // nullptr for reorders
  OpCall call;                 // for reorders: one input, one output
  std::vector<int> inputs;     // indices into StepPlan::values; -1: absent
  std::vector<int> outputs;
  KernelChoice choice;
  bool on_host = false;   // the host runs it, and all that it touches is there
  std::vector<int> sums;  // of a node of a tree: those that it adds; persistent indices
  int64_t workspace_offset = -1;
  Cost cost;
  // Seconds of a run of this node alone; cost/times.h has those that are shown.
  double modelled_s = 0;             // by the cost model that predicts
  std::optional<double> measured_s;  // of this kernel on this machine; none: it was not timed
  double correction = 1;  // of modelled_s: what kernels of this name took over what was modelled
  Bound bound = Bound::kLatency;
  std::vector<KernelRefusal> refusals;
};

// How a step adds up its slices in a tree (core/slice_tree.h).  The sums lie side by side, a block;
// further blocks hold sums that are added to it later.
struct TreePlan {
  SliceShare share;
  std::vector<SliceFold> folds;  // by slice
  DType wire = DType::kF32;      // NamedGraph::wire
  int64_t block_bytes = 0;
  int64_t segment_bytes = 0;     // WireBlock's, of each block that is sent
  std::vector<int> narrow = {};  // of the sums, those that are rounded to it
  int further = -1;  // persistent index of the blocks at positions 1, 2, ...; -1: there are none
};

struct StepPlan {
  std::string name;                // "train", "micro", "update", "eval"
  int64_t slices = 1;              // of the batch
  std::vector<int> sums;           // states that are sums over the slices: persistent indices
  std::optional<TreePlan> tree;    // none: slice after slice is added to a sum
  std::vector<PlannedNode> nodes;  // in an order in which they may run one by one
  Region body;                     // how they run
  std::vector<PlannedValue> values;
  std::map<std::string, int> inputs;   // by name, into values (slot 0's addresses)
  std::map<std::string, int> outputs;  // by name, into values
  int64_t scratch_bytes = 0;           // of the arena, behind the persistent region
  int64_t bound_bytes = 0;  // largest sum of live scratch values: no placement can do better
  int peak_node = 0;        // where the live sum is largest
  double calibration = 1;   // seconds of whole updates over the sum of their nodes'
};

struct Program {
  std::string model;
  std::string device;
  MemorySpace memory;                             // of the device
  std::optional<MeshPlace> place = std::nullopt;  // of the rank, whose graphs are parts
  // Of a rank whose graphs are stages: what it does in an update; else null.
  std::shared_ptr<const PipelineRole> pipeline = nullptr;
  std::vector<PersistentValue> persistent;
  std::vector<StepPlan> steps;
  // The arena: what rests on the host and scratch there, other variables, scratch.
  int64_t host_bytes = 0;           // in whole pages; 0: all of it is the device's
  int64_t host_scratch_offset = 0;  // of host_bytes, scratch of nodes on the host is the last part
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;  // persistent + largest scratch, in whole pages
  int64_t bound_bytes = 0;  // persistent + largest bound
  // Of scratch, between steps: the largest row-major copy of a variable, with its kernel's
  // workspace.
  int64_t copy_bytes = 0;
  // Bytes a second, in one direction, of the link over which kernels reach what rests on the host;
  // 0: it passes through windows of the device (plan/hardware/offload.h).
  double host_link_bytes_per_s = 0;

  int64_t device_persistent_bytes() const { return persistent_bytes - host_bytes; }
  int64_t device_arena_bytes() const { return arena_bytes - host_bytes; }

  const StepPlan* Find(const std::string& name) const;
};

}  // namespace ridge
