// Gradients of a convolution's weights and bias as two nodes.
#include "ridge/lower/split_bias_gradients.h"

#include <gtest/gtest.h>

#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

class OnlyOfWeights : public TestRules {
 public:
  bool GivesBiasGradient(DType operands) const override { return operands == DType::kF64; }
};

std::string Split(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "g.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  Result<Graph> split = SplitBiasGradients(*std::move(graph), OnlyOfWeights());
  EXPECT_TRUE(split.ok()) << split.status().message();
  EXPECT_TRUE(CheckGraph(*split).ok()) << CheckGraph(*split).message();
  return PrintGraph(*split);
}

TEST(SplitBiasGradients, SumsWhatTheKernelDoesNot) {
  EXPECT_EQ(Split(R"(graph g
  x = input bf16[2,3,8,8]
  dy = input bf16[2,4,6,6]
  dw, db = conv_grad_weight(x, dy, weight_dims=[4,3,3,3], bias=1, out_dtype="f32")
  output dw
  output db
)"),
            R"(graph g
  x = input bf16[2,3,8,8]
  dy = input bf16[2,4,6,6]
  dw = conv_grad_weight(x, dy, out_dtype="f32", weight_dims=[4,3,3,3])
  db = reduce_sum(dy, axes=[0,2,3], out_dtype="f32")
  output dw
  output db
)");
}

TEST(SplitBiasGradients, LeavesKernelsThatGiveBoth) {
  const std::string both = R"(graph g
  x = input f64[2,3,8]
  dy = input f64[2,4,6]
  dw, db = conv_grad_weight(x, dy, bias=1, weight_dims=[4,3,3])
  output dw
  output db
)";
  EXPECT_EQ(Split(both), both);
}

}  // namespace
}  // namespace ridge
