// Collectives: the operators by which values change how they lie.
//
// They are nodes of a local graph like any other, with records of their own: they are not in
// ops.def, because no single device computes them (`reference` is nullptr) but the last one:
//
//   all_reduce      y = the sum (largest, smallest) of x over the devices of `axis`
//   reduce_scatter  ... of which each keeps its part of `dim`
//   all_gather      y = the parts of `dim` of all devices
//   all_to_all      a cut of `from_dim` becomes one of `dim`
//   local_part      y = this device's part of `dim`; `coordinate` i64[] is its place on the axis
//
// `ranks` is the size of the mesh axis `axis`.  A dimension is `blocks` blocks, each of which is
// cut
// (`from_blocks` for from_dim).
#pragma once
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

const OpDef& AllReduceOp();
const OpDef& ReduceScatterOp();
const OpDef& AllGatherOp();
const OpDef& AllToAllOp();
const OpDef& LocalPartOp();

// Whether devices wait for each other: all of these but local_part.
bool IsCollective(const OpDef& op);

// The input of a local graph that holds a device's place on a mesh axis, i64[].
std::string CoordinateInput(const std::string& axis);

// One collective of a local graph.
struct MeshCollective {
  std::string op, axis, value;  // value: the name of what moves
  int64_t ranks = 1;
  int64_t bytes = 0;  // of the larger of operand and result on one device
  // What each device sends at least: 2 (ranks - 1) / ranks of the bytes for all_reduce, half of
  // that for the others.
  int64_t sent_bytes = 0;
};

// REQUIRES: IsCollective(*node.op).
MeshCollective DescribeCollective(const Graph& graph, const Node& node);

}  // namespace ridge
