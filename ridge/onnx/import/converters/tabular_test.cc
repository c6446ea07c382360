#include <gtest/gtest.h>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

using Numbers = std::vector<double>;

TestNode Ml(const char* op, int outputs = 1) {
  TestNode node(op, 3, outputs);
  node.Domain("ai.onnx.ml");
  return node;
}

TEST(OnnxLinearRegressor, IsAProductWithIntercepts) {
  TestNode node = Ml("LinearRegressor");
  node.Input("x", Counted({2, 2})).Floats("coefficients", {1, 10}).Floats("intercepts", {0.5F});
  EXPECT_EQ(node.Run(), (Numbers{10.5, 32.5}));
}

TEST(OnnxLinearRegressor, CountsItsCoefficients) {
  TestNode node = Ml("LinearRegressor");
  node.Input("x", Counted({2, 2})).Floats("coefficients", {1, 10, 100});
  EXPECT_EQ(node.Error(),
            "net: LinearRegressor 'y0': 3 coefficients; there must be 1 for each of 2 columns");
}

TEST(OnnxLinearClassifier, OneRowIsTheSecondOfTwoClasses) {
  TestNode node = Ml("LinearClassifier", 2);
  node.Input("x", Counted({2, 1})).Floats("coefficients", {2}).Floats("intercepts", {-1});
  node.Ints("classlabels_ints", {5, 7});
  EXPECT_EQ(node.Run(0), (Numbers{5, 7}));
  EXPECT_EQ(node.Run(1), (Numbers{1, -1, -1, 1}));
}

TEST(OnnxNormalizer, LeavesRowsOfZeros) {
  TestNode node = Ml("Normalizer");
  node.Input("x", Tensor::FromFloats({2, 2}, std::vector<float>{0, 0, 3, -1})).Text("norm", "L1");
  EXPECT_EQ(node.Run(), (Numbers{0, 0, 0.75, -0.25}));
}

TEST(OnnxScaler, SubtractsThenMultiplies) {
  TestNode node = Ml("Scaler");
  node.Input("x", Counted({2, 2})).Floats("offset", {1}).Floats("scale", {2, 3});
  EXPECT_EQ(node.Run(), (Numbers{-2, 0, 2, 6}));
}

TEST(OnnxArrayFeatureExtractor, TakesColumns) {
  TestNode node = Ml("ArrayFeatureExtractor");
  node.Input("x", Counted({2, 3})).ConstantInput("y", {2, 0});
  EXPECT_EQ(node.Run(), (Numbers{2, 0, 5, 3}));
}

}  // namespace
}  // namespace ridge
