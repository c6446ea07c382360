#include <gtest/gtest.h>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

Tensor F32(Dims dims, const std::vector<double>& values) {
  Tensor tensor({DType::kF32, std::move(dims)});
  ConvertFromDouble(DType::kF32, values.data(), tensor.mutable_data(), tensor.elements());
  return tensor;
}

// 5 * 1.4f is 7 in f32, and a little less in f64.
TEST(OnnxResize, AnExtentIsTheProductInF32) {
  TestNode node("Resize", 19);
  node.Input("x", Counted({5})).Absent().Initializer("scales", F32({1}, {1.4}));
  EXPECT_EQ(node.Type(), "f32[7]");
}

// The example "resize_downsample_nearest" of opset 10; and the place below where x grows.
TEST(OnnxResize, NearestOfOpset10TakesThePlaceAboveInWhatBecomesSmaller) {
  TestNode smaller("Resize", 10), larger("Resize", 10);
  smaller.Input("x", Counted({1, 1, 2, 4})).Initializer("scales", F32({4}, {1, 1, 0.6, 0.6}));
  EXPECT_EQ(smaller.Run(), (std::vector<double>{0, 2}));
  larger.Input("x", Counted({1, 1, 1, 2})).Initializer("scales", F32({4}, {1, 1, 1, 2}));
  EXPECT_EQ(larger.Run(), (std::vector<double>{0, 0, 1, 1}));
}

// Of the four columns around 1.25 three are the last one and one is the first, at distance 1.25.
TEST(OnnxGridSample, ACubicBehindTheBorderStillBends) {
  const Tensor x = F32({1, 1, 1, 2}, {1, 9});
  const Tensor grid = F32({1, 1, 1, 2}, {0.75, 0});  // column 1.25, row 0
  TestNode node("GridSample", 20);
  node.Input("x", x).Input("grid", grid).Text("mode", "cubic").Text("padding_mode", "border");
  constexpr double kFar = -0.75 * (1.25 * 1.25 * 1.25 - 5 * 1.25 * 1.25 + 8 * 1.25 - 4);
  ASSERT_EQ(node.Error(), "");
  EXPECT_NEAR(node.Run()[0], 9 - 8 * kFar, 1e-6);
}

}  // namespace
}  // namespace ridge
