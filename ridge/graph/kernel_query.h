// KernelQuery: what the planner asks a backend, without knowing it.
//
// For a node with inputs in these layouts: which kernels could run it, in which layouts, with what
// workspace.  Answers are a deterministic function of the question, the CPU type and the number of
// threads.  Layouts are numbers that the backend hands out; 0 is row-major.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

using LayoutId = int32_t;
inline constexpr LayoutId kRowMajor = 0;

// A way to run one node; part of the plan.
struct KernelChoice {
  std::string kernel;  // "onednn.conv/brgconv:avx512_core", "reference"
  std::vector<LayoutId> input_layouts;
  std::vector<LayoutId> output_layouts;
  int64_t workspace_bytes = 0;                // scratch, from the arena, 64-byte aligned
  std::vector<std::pair<int, int>> in_place;  // (output, input) that may share memory
  double efficiency = 1;  // share of what its cost class reaches on this device; reference: tiny
  // Same key, same time: names the kernel, types, layouts and attributes.
  std::string key;
  bool one_thread = false;  // made for the calling thread alone: it may run beside others
  // Most that a run takes from the system and gives back: a library's own buffers.
  int64_t heap_bytes = 0;
};

// A kernel that declines says why.
struct KernelRefusal {
  std::string kernel;
  std::string reason;
};

struct KernelOffers {
  std::vector<KernelChoice> choices;  // best first
  std::vector<KernelRefusal> refusals;
};

class KernelQuery {
 public:
  virtual ~KernelQuery() = default;
  // `available[i]` is the layout in which input i is at hand; a choice may want others.
  virtual KernelOffers Offers(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) = 0;
  // The same for kernels that run on the calling thread alone.  None: the backend has no such ones.
  virtual KernelOffers OffersAlone(const OpDef& op, const OpCall& call,
                                   std::span<const LayoutId> available) = 0;
  virtual int64_t LayoutBytes(LayoutId layout, const TensorType& type) const = 0;
  virtual std::string LayoutName(LayoutId layout) const = 0;  // "row_major", "nChw16c"
  // Copies from one layout into another; both are of `type`.
  virtual KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) = 0;
  virtual std::optional<KernelChoice> ReorderAlone(const TensorType& type, LayoutId from,
                                                   LayoutId to) = 0;
};

}  // namespace ridge
