// Evaluates a graph with the operators' references: for constant folding and tests.
//
// Every result is rounded to its dtype before it is read, as on the reference backend.  Allocates
// one tensor per value; not for training.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// One node on given inputs (an empty Tensor with type f32[0] and null data is an absent input).
std::vector<Tensor> EvaluateNode(const OpDef& op, const OpCall& call,
                                 const std::vector<Tensor>& inputs);

// All values of the graph, indexed by ValueId.  `given` holds inputs and variables by name;
// other variables are initialized by their Init with `seed`.
// Fails with kInvalidArgument when an input is missing or has another type.
Result<std::vector<Tensor>> EvaluateGraph(const Graph& graph,
                                          const std::map<std::string, Tensor>& given,
                                          uint64_t seed = 0);

// The initial contents of a variable.  This and the next three fail when they lie in a file that
// can't be read or has changed.
Result<Tensor> InitialValue(const ValueInfo& variable, uint64_t seed);
// The same, written in place.  REQUIRES: `data` holds variable.type.bytes() bytes.
Status FillInitialValue(const ValueInfo& variable, uint64_t seed, void* data);
// Elements [begin, end) of it, so that several threads can share the work.  `data` is the
// variable's start.  REQUIRES: `begin` is a multiple of kInitialGrain.
inline constexpr int64_t kInitialGrain = 1024;
Status FillInitialRange(const ValueInfo& variable, uint64_t seed, int64_t begin, int64_t end,
                        void* data);
// The same, into a buffer of their own.
Status FillInitialPiece(const ValueInfo& variable, uint64_t seed, int64_t begin, int64_t end,
                        void* to);

}  // namespace ridge
