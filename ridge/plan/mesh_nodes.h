// The nodes of a rank's graph on a mesh that no single device runs (partition/collectives.h).
//
//   MeshKernels kernels(device);            // the device's kernels, and one for each of these
//   PlanProgram(model, {parts.local}, kernels, ...)
//
// They work on row-major values.  What a rank packs to send and what it receives is their
// workspace, so an exchange allocates nothing.
#pragma once
#include <optional>

#include "ridge/core/slice_tree.h"
#include "ridge/lower/kernel_query.h"
#include "ridge/partition/collectives.h"
#include "ridge/plan/program.h"

namespace ridge {

bool IsMeshNode(const PlannedNode& node);
// Whether it exchanges with other ranks.
bool IsMeshCollective(const PlannedNode& node);

// Of the larger of its operand and its result.
int64_t CollectiveBytes(const PlannedNode& node);

class MeshKernels : public KernelQuery {
 public:
  // `device` outlives this.
  explicit MeshKernels(KernelQuery& device) : device_(device) {}

  MemorySpace memory() override { return device_.memory(); }
  const RewriteRules& rules() const override { return device_.rules(); }
  const CostModel& nominal() const override { return device_.nominal(); }
  bool Multiplies(DType operands) const override { return device_.Multiplies(operands); }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override;
  KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                    std::span<const LayoutId> available) override;
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return device_.LayoutBytes(layout, type);
  }
  std::string LayoutName(LayoutId layout) const override { return device_.LayoutName(layout); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return device_.Reorder(type, from, to);
  }
  std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                            LayoutId to) override {
    return device_.SerialReorder(type, from, to);
  }

 private:
  KernelQuery& device_;
};

// One dimension of a row-major array as runs, every `ranks`-th of which is a device's.
struct PartsOfDim {
  int64_t runs = 1;       // of one part
  int64_t run_bytes = 0;  // side by side
  int64_t ranks = 1;

  // `part`: a device's, of which the dimension has so many blocks.
  PartsOfDim(const TensorType& part, int64_t dim, int64_t blocks, int64_t ranks);
  int64_t part_bytes() const { return runs * run_bytes; }
  bool in_order() const { return runs <= 1; }  // the whole is the parts one behind the other
};

// Elements of `count` that the i-th of so many ranks reduces for all of them.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};
ElementRange ReducedBy(int64_t i, int64_t ranks, int64_t count);

// Bytes that a rank at this place of the axis sends.  REQUIRES: IsCollective(op).
int64_t SentBytes(const OpDef& op, const OpCall& call, int64_t coordinate);

// The samples of each batch that the program's rank reads; none: all of them.
std::optional<SliceShare> SampleShareOf(const Program& program);
// Whether no other rank counts the same samples before this one.
bool CountsSamples(const Program& program);

}  // namespace ridge
