// From one split of a value to another, step by step.
#pragma once
#include <vector>

#include "ridge/partition/split.h"

namespace ridge {

struct Move {
  enum class Kind { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kLocalPart };

  Kind kind = Kind::kAllReduce;
  int axis = 0;
  Factor::Over over = Factor::Over::kSum;  // of kAllReduce and kReduceScatter
  Cut from = {}, to = {};                  // what goes and what comes, where the kind has them
  Split before = {}, after = {};
};

// New cuts come first: they are local, and what follows has less to move.  A pending axis becomes a
// reduce_scatter where `want` is cut by it, else an all_reduce; a cut that moves to another
// dimension an all_to_all; one that goes an all_gather.
// REQUIRES: want.pending is among have.pending, and want's cuts nest.
std::vector<Move> MovesBetween(const Dims& dims, const Split& have, const Split& want,
                               const Mesh& mesh);

}  // namespace ridge
