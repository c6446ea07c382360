// DecodeForm: a language model's inference graph, for one token at a time.
//
//   tokens i64[1,T] -> logits f[1,T,V]     becomes     tokens i64[1,1], ridge.position i64[1] ->
//                                                      logits f[1,1,V]
//
// The positions are followed along the operators' axes (axes.h) from the tokens to the logits.
// Everything by position is computed for one of them; each causal attention keeps its keys and
// values of all positions in two states `cache.N.k` and `cache.N.v` f[T,heads,D], which a step
// extends by a row.  Steps run from position 0 on; what a state holds beyond the position is not
// read.
#pragma once
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

inline constexpr char kPositionInput[] = "ridge.position";

// `tokens`: the input of `inference`, i64[1,T], and `logits` its output, [1,T,V].
// Fails with kUnsupported when they are not of that form, and with the first node where positions
// meet in any other way than causal attention.
Result<Graph> DecodeForm(const Graph& inference, const std::string& tokens,
                         const std::string& logits);

}  // namespace ridge
