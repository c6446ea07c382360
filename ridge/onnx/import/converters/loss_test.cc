#include <gtest/gtest.h>

#include <cmath>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

TEST(OnnxSoftmaxCrossEntropyLoss, LabelsMayBeProbabilities) {
  const Tensor x = Tensor::FromFloats({1, 2}, std::vector<float>{0, std::log(3.0F)});
  const Tensor p = Tensor::FromFloats({1, 2}, std::vector<float>{0.25F, 0.75F});
  TestNode plain("SoftmaxCrossEntropyLoss", 13);
  const std::vector<double> loss = plain.Input("x", x).Input("p", p).Run();
  ASSERT_EQ(loss.size(), 1U);
  EXPECT_NEAR(loss[0], 0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3), 1e-6);
  TestNode weighted("SoftmaxCrossEntropyLoss", 13);
  const Tensor weights = Tensor::FromFloats({2}, std::vector<float>{2, 0});
  EXPECT_NEAR(weighted.Input("x", x).Input("p", p).Input("w", weights).Run().at(0),
              0.5 * std::log(4.0), 1e-6);
}

TEST(OnnxSoftmaxCrossEntropyLoss, FloatsOfAnotherShapeAreNoLabels) {
  TestNode node("SoftmaxCrossEntropyLoss", 13);
  node.Input("x", Counted({2, 3})).Input("p", Counted({2}));
  EXPECT_EQ(node.Error(),
            "net: SoftmaxCrossEntropyLoss 'y0': labels are f32[2]; they must be i64[2] or i32[2] "
            "for x f32[2,3]");
}

}  // namespace
}  // namespace ridge
