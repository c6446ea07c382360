#include "ridge/plan/rate_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

PlannedNode NodeBy(const std::string& kernel, double seconds) {
  PlannedNode node;
  node.choice.kernel = kernel;
  node.cost = {.flops = 10, .bytes_read = 500, .bytes_written = 500};
  node.modelled_s = seconds;
  return node;
}

TEST(RateSources, NameEachKernelThatTheRecordLacksOnce) {
  Program program;
  StepPlan& step = program.steps.emplace_back();
  step.nodes = {NodeBy("cpu.move", 1), NodeBy("onednn.softmax/jit:avx2", 2),
                NodeBy("onednn.softmax/jit:avx2", 1)};
  const RateSources sources = RateSourcesOf(program, {{"cpu.move by bytes", {{1000, 1e9}}}});
  EXPECT_EQ(sources.rated, 1);
  EXPECT_THAT(sources.missing, testing::ElementsAre("onednn.softmax/jit:avx2"));
  EXPECT_DOUBLE_EQ(sources.missing_share, 0.75);
}

}  // namespace
}  // namespace ridge
