#include "ridge/plan/mesh_nodes.h"

#include "ridge/partition/layouts.h"
#include "ridge/plan/tree_sums.h"

namespace ridge {
namespace {

bool IsOfMesh(const OpDef& op) { return IsCollective(op) || &op == &LocalPartOp(); }

// Of what a rank packs before it sends, and of what it receives; 0 where both lie in order.
int64_t StagedBytes(const PartsOfDim& parts) {
  return parts.in_order() ? 0 : parts.ranks * parts.part_bytes();
}

int64_t ExchangeBytes(const OpDef& op, const OpCall& call) {
  const int64_t ranks = call.integer("ranks");
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  if (&op == &AllReduceOp()) {
    const int64_t most = ReducedBy(0, ranks, x.elements()).count();
    return (ranks - 1) * most * BytesPerElement(x.dtype);
  }
  if (&op == &AllToAllOp()) return 2 * x.bytes();
  const int64_t dim = call.integer("dim"), blocks = call.integer("blocks");
  if (&op == &ReduceScatterOp())
    return StagedBytes({y, dim, blocks, ranks}) + (ranks - 1) * y.bytes();
  if (&op == &AllGatherOp()) return StagedBytes({x, dim, blocks, ranks});
  return 0;
}

}  // namespace

bool IsMeshNode(const PlannedNode& node) { return node.def != nullptr && IsOfMesh(*node.def); }

bool IsMeshCollective(const PlannedNode& node) {
  return node.def != nullptr && IsCollective(*node.def);
}

int64_t CollectiveBytes(const PlannedNode& node) {
  return std::max(node.call.inputs[0].bytes(), node.call.outputs[0].bytes());
}

KernelCandidates MeshKernels::Candidates(const OpDef& op, const OpCall& call,
                                         std::span<const LayoutId> available) {
  if (!IsOfMesh(op)) return device_.Candidates(op, call, available);
  KernelChoice choice = RowMajorChoice(op, call, op.name);
  choice.key = CallKey(op, call);
  choice.workspace_bytes = ExchangeBytes(op, call);
  return {{std::move(choice)}, {}};
}

KernelCandidates MeshKernels::SerialCandidates(const OpDef& op, const OpCall& call,
                                               std::span<const LayoutId> available) {
  return IsOfMesh(op) ? KernelCandidates() : device_.SerialCandidates(op, call, available);
}

PartsOfDim::PartsOfDim(const TensorType& part, int64_t dim, int64_t blocks, int64_t ranks)
    : ranks(ranks) {
  const auto d = static_cast<size_t>(dim);
  int64_t run = part.dims[d] / blocks * BytesPerElement(part.dtype);
  for (size_t i = d + 1; i < part.dims.size(); ++i) run *= part.dims[i];
  run_bytes = run;
  runs = run == 0 ? 0 : part.bytes() / run;
}

ElementRange ReducedBy(int64_t i, int64_t ranks, int64_t count) {
  const int64_t each = count / ranks, more = count % ranks;
  const int64_t begin = i * each + std::min(i, more);
  return {begin, begin + each + (i < more ? 1 : 0)};
}

int64_t SentBytes(const OpDef& op, const OpCall& call, int64_t coordinate) {
  const int64_t ranks = call.integer("ranks");
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  if (&op == &ReduceScatterOp()) return (ranks - 1) * y.bytes();
  if (&op == &AllGatherOp()) return (ranks - 1) * x.bytes();
  if (&op == &AllToAllOp()) return (ranks - 1) * (x.bytes() / ranks);
  const int64_t own = ReducedBy(coordinate, ranks, x.elements()).count();
  return (x.elements() - own + (ranks - 1) * own) * BytesPerElement(x.dtype);
}

std::optional<SliceShare> SampleShareOf(const Program& program) {
  if (!program.place) return ShareOf(program);
  const MeshPlace& place = *program.place;
  const int axis = place.mesh.Find(kDataAxis);
  if (axis < 0 || place.mesh.size(axis) == 1) return std::nullopt;
  const int64_t ranks = place.mesh.size(axis);
  return SliceShare{ranks, static_cast<int>(place.coordinate(axis)), static_cast<int>(ranks)};
}

bool CountsSamples(const Program& program) {
  if (!program.place) return true;
  const MeshPlace& place = *program.place;
  for (int axis = 0; axis < static_cast<int>(place.mesh.axes.size()); ++axis) {
    if (axis != place.mesh.Find(kDataAxis) && place.coordinate(axis) > 0) return false;
  }
  return true;
}

}  // namespace ridge
