// The graphs in docs/text_graph.md are read as a user would write them to a file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "ridge/backend/cpu/host_rules.h"
#include "ridge/core/files.h"
#include "ridge/graph/text.h"
#include "ridge/lower/pipeline.h"

namespace ridge {
namespace {

// The blocks between ``` that begin with "graph ".
std::vector<std::string> GraphsIn(const std::string& text) {
  const std::string fence = "```\n";
  std::vector<std::string> graphs;
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    const size_t begin = at + fence.size(), end = text.find(fence, begin);
    if (end == std::string::npos) break;
    const std::string block = text.substr(begin, end - begin);
    if (block.starts_with("graph ")) graphs.push_back(block);
    at = end + fence.size();
  }
  return graphs;
}

TEST(TextGraphDocument, ItsGraphsAreReadBoundAndSimplified) {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  const Result<std::string> text =
      ReadFile(std::string(source == nullptr ? "." : source) + "/docs/text_graph.md");
  ASSERT_TRUE(text.ok()) << text.status().message();
  const std::vector<std::string> graphs = GraphsIn(*text);
  ASSERT_EQ(graphs.size(), 1u);
  for (const std::string& one : graphs) {
    const Result<Graph> graph = ParseGraph(one, "text_graph.md");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Result<Graph> bound = BindDims(*graph, {{"batch", 5}});
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    EXPECT_EQ(bound->type(bound->FindOutput("logits")), (TensorType{DType::kF32, {5, 10}}));
    const Result<Graph> simple = RunPasses(*bound, *ParsePassSpec(""), HostRules());
    ASSERT_TRUE(simple.ok()) << simple.status().message();
    EXPECT_LT(simple->nodes().size(), bound->nodes().size());
  }
}

}  // namespace
}  // namespace ridge
