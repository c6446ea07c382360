// Copies are joined with what reads them as their originals are: an epilogue rounds otherwise than
// a node of its own.
#include "ridge/lower/recompute.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "ridge/graph/test_results.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

// The graph with `values` computed again for the nodes that write `late`, fused.
std::string Fused(const std::string& text, std::initializer_list<const char*> values,
                  std::initializer_list<const char*> late) {
  const Graph graph = ParsedGraph(text);
  RecomputeSet set;
  set.values.resize(graph.values().size());
  set.late_readers.resize(graph.nodes().size());
  for (const char* name : values) set.values[static_cast<size_t>(graph.FindValue(name))] = true;
  for (const char* name : late) {
    const ValueId id = graph.FindValue(name);
    set.late_readers[static_cast<size_t>(graph.value(id).producer)] = true;
  }
  Result<Graph> again = RecomputeValues(graph, set);
  EXPECT_TRUE(again.ok()) << again.status().message();
  Result<Graph> fused =
      RunPasses(*std::move(again), *ParsePassSpec("only:dce,fuse"), UnlimitedRules());
  EXPECT_TRUE(fused.ok()) << fused.status().message();
  return PrintGraph(*fused);
}

TEST(RecomputeValues, AValueThatOnlyLateNodesReadIsComputedOnce) {
  EXPECT_EQ(Fused(R"(graph g
  x = input f64[2,3]
  w = input f64[3,4]
  v = matmul(x, w)
  y = tanh(v)
  output y
)",
                  {"v"}, {"y"}),
            R"(graph g
  x = input f64[2,3]
  w = input f64[3,4]
  y = matmul(x, w, epilogue="tanh")
  output y
)");
}

TEST(RecomputeValues, ACopyOfAChainRoundsAsTheChain) {
  EXPECT_EQ(Fused(R"(graph g
  x = input f64[2,3]
  w = input f64[3,4]
  v = matmul(x, w)
  t = tanh(v)
  early = reduce_sum(t)
  other = reduce_sum(v)
  late = reduce_max(t)
  output early
  output other
  output late
)",
                  {"v", "t"}, {"late"}),
            R"(graph g
  x = input f64[2,3]
  w = input f64[3,4]
  v = matmul(x, w) role=recomputed
  t = tanh(v) role=recomputed
  early = reduce_sum(t)
  other = reduce_sum(v)
  v.again = matmul(x, w) role=recomputed
  t.again = tanh(v.again) role=recomputed
  late = reduce_max(t.again)
  output early
  output other
  output late
)");
}

}  // namespace
}  // namespace ridge
