#include "ridge/lower/fuse_epilogue.h"

#include <gtest/gtest.h>

#include "ridge/graph/text.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

// As cuDNN has convolutions: results have the type of the operands.
class CudnnRules : public TestRules {
 public:
  bool Fuses(const OpDef&, const OpCall& call) const override {
    return call.outputs[0].dtype == call.inputs[0].dtype && call.text("epilogue") == "relu";
  }
  bool GivesF32Sums(const OpDef& op) const override { return op.name != "conv"; }
};

std::string Fused(const std::string& text, const RewriteRules& rules) {
  Result<Graph> graph = ParseGraph(text, "test");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  Result<Graph> fused = FuseEpilogues(*std::move(graph), rules);
  EXPECT_TRUE(fused.ok()) << fused.status().message();
  return PrintGraph(*fused);
}

TEST(FuseEpilogues, OfAConvolutionThatIsNarrowedLaterAreThoseOfItsLaterType) {
  const std::string text = R"(graph g
  x = input bf16[4,16,8,8]
  w = input bf16[16,16,1,1]
  b = input f32[16]
  y = conv(x, w, b, out_dtype="f32")
  r = relu(y)
  output r
)";
  EXPECT_EQ(Fused(text, CudnnRules()), R"(graph g
  x = input bf16[4,16,8,8]
  w = input bf16[16,16,1,1]
  b = input f32[16]
  r = conv(x, w, b, epilogue="relu", out_dtype="f32")
  output r
)");
}

TEST(FuseEpilogues, OfAProductOfF32AreThoseOfItsType) {
  const std::string text = R"(graph g
  x = input bf16[8,8]
  y = matmul(x, x, out_dtype="f32")
  r = relu(y)
  output r
)";
  EXPECT_EQ(Fused(text, CudnnRules()), text);
}

}  // namespace
}  // namespace ridge
