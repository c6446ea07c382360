// Scattered updates that are added to a sum: the same result, whatever else reads them.
#include "ridge/lower/scatter_into_sum.h"

#include <gtest/gtest.h>

#include "ridge/graph/test_results.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

Graph Joined(const std::string& text, const RewriteRules& rules = UnlimitedRules()) {
  Result<Graph> joined = ScatterIntoSum(ParsedGraph(text), rules);
  EXPECT_TRUE(joined.ok()) << joined.status().message();
  return *std::move(joined);
}

std::string Step(const std::string& sum, const std::string& axis = "0",
                 const std::string& more = "") {
  return R"(graph g
  i = input i64[3]
  u = input f64[3,3]
  x = input f64[3,3]
  s = scatter_add(i, u, axis=)" +
         axis + R"(, dims=[3,3])
)" + more +
         "  y = " + sum + R"(
  output y
)";
}

TEST(ScatterIntoSum, AddsToEitherAddend) {
  for (const char* sum : {"add(x, s)", "add(s, x)"}) {
    EXPECT_EQ(PrintGraph(Joined(Step(sum))), R"(graph g
  i = input i64[3]
  u = input f64[3,3]
  x = input f64[3,3]
  y = scatter(x, i, u, reduction="add")
  output y
)");
    ExpectSameBits(ParsedGraph(Step(sum)), Joined(Step(sum)), {3, 1});
  }
}

// Another axis, other readers, another operator, and an addend that is broadcast.
TEST(ScatterIntoSum, LeavesOtherSums) {
  const std::string row = "  r = reduce_sum(x, axes=[0])\n";
  for (const std::string& step :
       {Step("add(x, s)", "1"), Step("add(s, s)"), Step("mul(x, s)"), Step("add(r, s)", "0", row),
        Step("add(x, s)", "0", "  z = exp(s)\n  output z\n")})
    EXPECT_EQ(PrintGraph(Joined(step)), PrintGraph(ParsedGraph(step))) << step;
}

TEST(ScatterIntoSum, LeavesWhatTheDeviceAddsApart) {
  EXPECT_EQ(PrintGraph(Joined(Step("add(x, s)"), FusesNothing())),
            PrintGraph(ParsedGraph(Step("add(x, s)"))));
}

}  // namespace
}  // namespace ridge
