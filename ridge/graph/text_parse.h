// Reads a graph from inside another text.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/graph/text_lexer.h"

namespace ridge {

// Subgraphs within subgraphs, at most.
inline constexpr int kDeepestGraph = 8;

// Reads "graph NAME" and its statements up to the end of the text (depth 0) or a closing brace,
// which is not consumed.
Result<Graph> ReadGraph(TokenReader& reader, int depth);

}  // namespace ridge
