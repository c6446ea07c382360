// KernelQuery: the planner's interface to a backend.
//
// For a node with inputs in given layouts it returns the kernels that can run it, with their
// layouts and workspace.  Answers are a deterministic function of the query, the CPU type and the
// number of threads.  Layouts are numbers that the backend assigns; 0 is row-major.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/rounding.h"
#include "ridge/graph/op_def.h"
#include "ridge/lower/cost_model.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

using LayoutId = int32_t;
inline constexpr LayoutId kRowMajor = 0;

// What a library said of a kernel on a device that is not here.
struct LibraryAnswer {
  std::string library;    // "cuDNN 9.19.0"
  bool is_asked = false;  // by this program; else its answer is on record
  // Workspace of its first choice, whose bits may differ from run to run.
  int64_t first_bytes = 0;
};

// A way to run one node; part of the plan.
struct KernelChoice {
  std::string kernel;  // "onednn.conv/brgconv:avx512_core", "reference"
  std::vector<LayoutId> input_layouts;
  std::vector<LayoutId> output_layouts;
  int64_t workspace_bytes = 0;  // scratch, from the arena, aligned as MemorySpace says
  bool is_bound = false;        // no kernel takes more than workspace_bytes, but perhaps less
  std::vector<std::pair<int, int>> in_place;  // (output, input) that may share memory
  double efficiency = 1;  // relative to its cost class on this device; reference: tiny
  // Names the kernel, types, layouts and attributes: choices of equal key take equal time.
  std::string key;
  bool one_thread = false;  // runs on the calling thread only, so others may run at the same time
  // Peak heap memory of a run, freed before it returns: a library's own buffers.
  int64_t heap_bytes = 0;
  double extra_s = 0;  // beyond the device's rates: of work that the operator's cost does not count
  std::optional<LibraryAnswer> answer = {};  // none: no library was asked about workspace_bytes
};

// Why a kernel does not run a node.
struct KernelRefusal {
  std::string kernel;
  std::string reason;
};

// The kernels that can run a node, and why the others decline it.
struct KernelCandidates {
  std::vector<KernelChoice> choices;  // best first
  std::vector<KernelRefusal> refusals;
};

// What a device asks of addresses in its memory.
struct MemorySpace {
  int64_t alignment_bytes = 64;  // of every value and workspace: a power of two
  int64_t page_bytes = 4096;     // it has memory by the page; a multiple of the alignment
  bool shared = true;            // with other programs: bytes that are left free are worth time
  bool host_visible = true;      // the host follows its addresses

  int64_t Aligned(int64_t bytes) const { return RoundUp(bytes, alignment_bytes); }
};

class KernelQuery {
 public:
  virtual ~KernelQuery() = default;
  virtual MemorySpace memory() { return {}; }
  // The host's kernels, beside those of a device with a memory of its own; nullptr: none are there.
  virtual KernelQuery* host() { return nullptr; }
  virtual const RewriteRules& rules() const = 0;
  // By which all choices are made.
  virtual const CostModel& nominal() const = 0;
  // Whether the device has instructions for products of this type, which are no slower than f32.
  virtual bool Multiplies(DType operands) const = 0;
  // `available[i]` is the layout of input i; a choice may require another.
  virtual KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                                      std::span<const LayoutId> available) = 0;
  // The same for kernels that run on the calling thread only; empty when the backend has none.
  virtual KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                            std::span<const LayoutId> available) = 0;
  virtual int64_t LayoutBytes(LayoutId layout, const TensorType& type) const = 0;
  virtual std::string LayoutName(LayoutId layout) const = 0;  // "row_major", "nChw16c"
  // Copies from one layout into another; both are of `type`.
  virtual KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) = 0;
  virtual std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                                    LayoutId to) = 0;
  // The efficiency of the best candidate for row-major inputs; 0 when there is none.
  virtual double BestEfficiency(const OpDef& op, const OpCall& call);
};

// Row-major inputs and outputs, bytes shared as OpDef::in_place allows where the types are equal,
// no workspace, no key.
KernelChoice RowMajorChoice(const OpDef& op, const OpCall& call, const std::string& kernel);

// Key text of a call: operator, types, attributes.  Equal calls, equal text.
std::string CallKey(const OpDef& op, const OpCall& call);

}  // namespace ridge
