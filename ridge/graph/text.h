// The text form of a graph: printed, parsed, compared by tests, written by users.
// The grammar and examples are in docs/text_graph.md.
#pragma once
#include <string>
#include <string_view>

#include "ridge/graph/graph.h"

namespace ridge {

// Parsing the text gives a graph that prints the same text.  Large constants and tensors are
// printed as their values when they have at most 64 elements, else as a base64 blob.
// REQUIRES: initial values are in memory (LoadInitialTensors).
std::string PrintGraph(const Graph& graph);
// Brings initial values that lie in a file into memory.
Status LoadInitialTensors(Graph& graph);

// `file` is for messages: "net.ridge:8: ...".  Fails with kInvalidModel.
Result<Graph> ParseGraph(std::string_view text, const std::string& file);

}  // namespace ridge
