// Losses, largest logits and gradients of one reading: the same results, whatever else reads them.
#include "ridge/lower/read_logits_once.h"

#include <gtest/gtest.h>

#include "ridge/graph/test_results.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

Graph Joined(const std::string& text, const RewriteRules& rules = UnlimitedRules()) {
  Result<Graph> joined = ReadLogitsOnce(ParsedGraph(text), rules);
  EXPECT_TRUE(joined.ok()) << joined.status().message();
  return *std::move(joined);
}

void ExpectSame(const std::string& text) {
  ExpectSameBits(ParsedGraph(text), Joined(text), {3, 1});
}

// In f64 the log-sums are as exact as what the gradient finds itself.
constexpr char kStep[] = R"(graph g
  x = input f64[2,3,5]
  label = input i64[2,3]
  losses = softmax_cross_entropy(x, label, ignore_index=-1)
  best = argmax(x, axis=2)
  dlosses = exp(losses)
  dx = softmax_cross_entropy_grad(x, label, dlosses, ignore_index=-1)
  output losses
  output best
  output dx
)";

TEST(ReadLogitsOnce, GivesAllOfOneReading) {
  EXPECT_EQ(PrintGraph(Joined(kStep)), R"(graph g
  x = input f64[2,3,5]
  label = input i64[2,3]
  losses, losses.log_sums, losses.best = softmax_cross_entropy(x, label, extra_outputs=2, ignore_index=-1)
  dlosses = exp(losses)
  dx = softmax_cross_entropy_grad(x, label, dlosses, losses.log_sums, ignore_index=-1)
  output losses
  output best = losses.best
  output dx
)");
  ExpectSame(kStep);
}

TEST(ReadLogitsOnce, LeavesWhatTheDeviceReadsApart) {
  EXPECT_EQ(PrintGraph(Joined(kStep, FusesNothing())), PrintGraph(ParsedGraph(kStep)));
}

// A loss alone, columns, and an argmax whose axis stays.
TEST(ReadLogitsOnce, LeavesOtherReaders) {
  const std::string graph = R"(graph g
  x = input f64[3,5]
  label = input i64[3]
  losses = softmax_cross_entropy(x, label)
  columns = argmax(x, axis=0)
  kept = argmax(x, axis=1, keep_dims=1)
  output losses
  output columns
  output kept
)";
  EXPECT_EQ(PrintGraph(Joined(graph)), PrintGraph(ParsedGraph(graph)));
}

// The readers may come before the loss, and its labels after them.
TEST(ReadLogitsOnce, TakesReadersInAnyOrder) {
  ExpectSame(R"(graph g
  x = input f64[3,5]
  dlosses = input f64[3]
  label = input i64[3]
  best = argmax(x, axis=-1)
  dx = softmax_cross_entropy_grad(x, label, dlosses)
  losses = softmax_cross_entropy(x, label)
  output losses
  output best
  output dx
)");
  ExpectSame(R"(graph g
  x = input f64[3,5]
  best = argmax(x, axis=-1)
  next = input i64[3]
  label = sub(best, next)
  losses = softmax_cross_entropy(x, label, ignore_index=-1)
  output losses
  output best
)");
}

TEST(ReadLogitsOnce, GivesTheLogSumsToEachGradientOfTheLogits) {
  const std::string two = R"(graph g
  x = input f64[3,5]
  a = input i64[3]
  b = input i64[3]
  first = softmax_cross_entropy(x, a)
  second = softmax_cross_entropy(x, b, ignore_index=1)
  dfirst = softmax_cross_entropy_grad(x, a, first)
  dsecond = softmax_cross_entropy_grad(x, b, second, ignore_index=1)
  dx = add(dfirst, dsecond)
  output dx
)";
  ExpectSame(two);
  const Graph joined = Joined(two);
  for (const Node& node : joined.nodes()) {
    if (node.op->name != "softmax_cross_entropy_grad") continue;
    EXPECT_EQ(node.inputs.size(), 4u);
  }
}

}  // namespace
}  // namespace ridge
