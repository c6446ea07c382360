// Split: how a value lies on the devices of a mesh.
//
// A cut takes one factor of a dimension away: of a dimension that is `blocks` blocks, each block
// is cut into as many equal parts as the axis has devices, and device i has part i of each.  So
//
//   f32[3072] cut by t=4, 1 block      device i has [768 i, 768 (i + 1))
//   f32[3072] cut by t=4, 3 blocks     ... the same quarter of q, of k and of v
//   f32[B*T] cut by d, and by t in B blocks: rows of [B,T], both of which are cut
//
// The cuts of one dimension nest: what they take away are different factors of its extent.  So each
// can be made or undone without the others.
//
// A value may also be pending by axes: the whole is the sum (or the largest, or the smallest) of
// what the devices along the axis have.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/graph/axes.h"
#include "ridge/partition/mesh.h"

namespace ridge {

struct Cut {
  int dim = 0;
  int axis = 0;  // of the mesh
  int64_t blocks = 1;

  auto operator<=>(const Cut&) const = default;
};

struct PendingAxis {
  int axis = 0;
  Factor::Over over = Factor::Over::kSum;  // kSum, kMax or kMin

  auto operator<=>(const PendingAxis&) const = default;
};

// An axis is there once: in a cut or pending.
struct Split {
  std::vector<Cut> cuts;             // by dimension, then from coarse to fine
  std::vector<PendingAxis> pending;  // by axis

  bool is_whole() const { return cuts.empty() && pending.empty(); }
  const Cut* CutBy(int axis) const;              // nullptr: none is
  const PendingAxis* PendingBy(int axis) const;  // nullptr: it is not
  bool Uses(int axis) const { return CutBy(axis) != nullptr || PendingBy(axis) != nullptr; }
  void Add(Cut cut);
  void Remove(int axis);
  void AddPending(PendingAxis pending_axis);

  auto operator<=>(const Split&) const = default;
};

// Whether a value of these dims can have the cut beside its others: the axis is free, the extent
// is a multiple, and the cuts nest.
bool CanCut(const Dims& dims, const Split& split, const Cut& cut, const Mesh& mesh);

// The extents on each device.
Dims LocalDims(const Dims& dims, const Split& split, const Mesh& mesh);
// The blocks of a cut in what a device has: without the factors that coarser cuts take away.
int64_t LocalBlocks(const Split& split, const Cut& cut, const Mesh& mesh);

// "[d,-,t/3] + sum t"; "[d*t,-]" where two axes cut one dimension.
std::string SplitText(const Split& split, int rank, const Mesh& mesh);

// For each index along a dimension of a device's part the index in the whole: rising.
std::vector<int64_t> PlacesAlong(int dim, int64_t extent, const Split& split, const Mesh& mesh,
                                 const std::vector<int64_t>& coordinates);

// For each element of a device's part, row-major, its place in the whole.
std::vector<int64_t> PlacesOfPart(const Dims& dims, const Split& split, const Mesh& mesh,
                                  const std::vector<int64_t>& coordinates);

}  // namespace ridge
