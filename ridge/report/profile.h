// A profile: one measured training step taken apart, so that every second of it has a place.
//
// A node's limit is max(flops / peak, bytes / bandwidth) with the peak of its dtype and the
// bandwidth of the smallest memory level that holds what it touches.  Bandwidths are those of a
// triad: a node that mostly reads, or finds its data in a nearer level, gets above its limit.
// Matmuls and convolutions whose first term is the larger one count as compute, all else as memory;
// a reorder's limit is 0, since nobody asked for it, and so is that of a node that the host runs
// for a GPU, whose limits are not the host's.  Nodes of equal kernel keys do equal work and make
// one group. Pure: equal measurement, equal profile.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/device_profile.h"
#include "ridge/plan/program.h"
#include "ridge/report/terminal.h"

namespace ridge {

// What was measured.  `step` must outlive it.
struct StepMeasurement {
  std::string model, optimizer, version;
  DType operands = DType::kF32;  // of products
  int64_t batch = 0, threads = 0, parameters = 0;
  const StepPlan* step = nullptr;
  int64_t persistent_bytes = 0;  // of the arena: parameters, states, input slots
  DeviceProfile limits;          // peaks and DRAM bandwidth as measured beside the step
  double model_flops = 0;        // of one step of the graph as built
  int64_t steps = 0;             // rounds of one step with node times and one without
  double step_s = 0;             // wall time of the step shown, wait for data included
  double plain_step_s = 0;       // fastest step without node times
  double input_wait_s = 0;       // of the step shown
  bool has_data = false;         // else one batch lies in place and input is no part of a step
  std::vector<double> node_s;    // of the step shown, by node
};

enum class ProfilePart { kCompute, kMemory, kReorder, kInputWait, kRuntime };
const char* ProfilePartName(ProfilePart part);  // "compute"

struct ProfiledNode {
  double seconds = 0, limit_s = 0;
  double planned_s = 0;  // of one run
  ProfilePart part = ProfilePart::kMemory;
  std::string row;    // the table's: the operator, of reorders what they copy: "of weights"
  std::string level;  // smallest memory level that holds what the node touches: "L2"; "host"
  bool on_host = false;
  int group = 0;  // index into StepProfile::groups
};

// Nodes of one kernel key.
struct ProfileGroup {
  std::vector<int> nodes;  // indices into StepPlan::nodes, in order
  std::string name, op, kernel, key;
  ProfilePart part = ProfilePart::kMemory;
  std::string row, level;
  bool on_host = false;
  double seconds = 0, limit_s = 0;  // of all nodes together
  double flops = 0, bytes = 0;
  std::string
      cause;        // why it is far from its limit, in a word or two: "row-major"; empty: it isn't
  std::string why;  // the same with numbers

  double share_of_limit() const { return seconds > 0 ? limit_s / seconds : 0; }
};

// A row of the table that adds up to the step.
struct ProfileRow {
  ProfilePart part = ProfilePart::kRuntime;
  std::string name;  // "conv", "of weights"; empty where the part is one row
  int nodes = 0;
  double seconds = 0, limit_s = 0;
};

// A change and what it would gain at most.
struct ProfileAdvice {
  double gain_s = 0;
  std::string what, how;
  int nodes = 0;
};

struct StepProfile {
  StepMeasurement measured;
  std::vector<ProfiledNode> nodes;    // as StepPlan::nodes
  std::vector<ProfileGroup> groups;   // longest first
  std::vector<ProfileRow> rows;       // by part, then longest first; seconds add up to step_s
  std::vector<ProfileAdvice> advice;  // best first, at most three
  double limit_s = 0;                 // of all nodes that have one
  double roofline_step_s = 0;         // the contract's: all bytes cross the slowest memory
  double flops_floor_s = 0;           // model_flops at the peak rate
};

// REQUIRES: one time a node.
StepProfile AnalyzeStep(StepMeasurement measured);

// Bytes of the arena that are in use while each node runs, by purpose; persistent ones under
// theirs.
struct LiveBytes {
  int64_t persistent = 0, activations = 0, gradients = 0, workspace = 0;
  int64_t total() const { return persistent + activations + gradients + workspace; }
};
std::vector<LiveBytes> LiveBytesByNode(const StepPlan& step, int64_t persistent_bytes);

// FLOP/s of a dtype, "f32" where it is not known.
double PeakFlopsOf(const DeviceProfile& limits, DType dtype);

std::string ProfileReport(const StepProfile& profile, const Terminal& terminal);
// One line; docs/performance/profile.md lists the keys.
std::string ProfileToJson(const StepProfile& profile);
std::string ProfileToHtml(const StepProfile& profile);  // one file without references
// The step as a timeline with the arena's bytes below it.  Fails with kUnavailable.
Status WriteProfileTrace(const StepProfile& profile, const std::string& path);

}  // namespace ridge
