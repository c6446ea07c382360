// CachedStep: what a language model computes for one more token of each of its sequences.
//
//   tokens i64[B,1] -> logits f[B,1,V]
//
// Made of the inference graph for one token.  Each causal attention reads the keys and values of
// `length` tokens in states `cache.N.k` and `cache.N.v` [B,heads,length,D]; what does not depend on
// the tokens (an encoder, and the keys and values of its output) is a state `once.N`.  The token's
// own keys and values are outputs.
//
// For plans: bytes and time of a step.  Nothing extends the caches; decode_form.h does, for one
// sequence.
#pragma once
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

// `tokens`: the input of `inference`, i64[B,1], and `logits` its output.  REQUIRES: length >= 1.
// Fails with kUnsupported when there is no such input or output, the logits do not depend on the
// tokens, or a causal attention has a mask.
Result<Graph> CachedStep(const Graph& inference, const std::string& tokens,
                         const std::string& logits, int64_t length);

}  // namespace ridge
