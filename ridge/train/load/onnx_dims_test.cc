#include "ridge/train/load/onnx_dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/train/load/onnx_test_model.h"

namespace ridge {
namespace {

using ::testing::HasSubstr;
using Dimensions = std::map<std::string, int64_t>;

class OnnxDimsTest : public ::testing::Test {
 protected:
  void Input(const std::string& name, const std::vector<std::string>& dims,
             int32_t type = onnx::TensorProto::FLOAT) {
    AddOnnxInfo(*model_.mutable_graph()->add_input(), name, type, dims);
    AddOnnxNode(*model_.mutable_graph(), "Identity", {name}, name + "_out");
    AddOnnxInfo(*model_.mutable_graph()->add_output(), name + "_out", type, dims);
  }
  Result<Dimensions> Bind(const ModelRequest& request) {
    const Result<OnnxModel> model = OnnxModel::Parse(model_.SerializeAsString(), "net.onnx");
    if (!model.ok()) return model.status();
    return BindOnnxDims(*model, request);
  }
  Dimensions Bound(const ModelRequest& request) {
    const Result<Dimensions> dims = Bind(request);
    EXPECT_TRUE(dims.ok()) << dims.status().message();
    return dims.ok() ? *dims : Dimensions();
  }
  std::string ErrorOf(const ModelRequest& request) {
    const Result<Dimensions> dims = Bind(request);
    EXPECT_FALSE(dims.ok());
    EXPECT_EQ(dims.status().code(), ErrorCode::kInvalidArgument);
    return dims.status().message();
  }
  static ModelRequest Training(int64_t batch, std::vector<Field> fields = {}) {
    ModelRequest request;
    request.batch = batch;
    request.fields = std::move(fields);
    return request;
  }

  onnx::ModelProto model_ = EmptyOnnxModel();
};

TEST_F(OnnxDimsTest, TheFirstDimensionIsTheBatch) {
  Input("x", {"N", "4"});
  Input("y", {"?", "4"});
  EXPECT_EQ(Bound(Training(16)), (Dimensions{{"N", 16}, {"y_0", 16}}));
}

TEST_F(OnnxDimsTest, AFileForAnotherBatchIsRefused) {
  Input("x", {"8", "4"});
  EXPECT_THAT(ErrorOf(Training(16)), HasSubstr("written for a batch of 8; --batch is 16"));
  EXPECT_TRUE(Bind(Training(8)).ok());
}

TEST_F(OnnxDimsTest, OthersComeFromTheFieldOfTheName) {
  Input("tokens", {"N", "length"}, onnx::TensorProto::INT64);
  EXPECT_EQ(Bound(Training(2, {{"tokens", {DType::kI64, {128}}}, {"other", {DType::kI64, {7}}}})),
            (Dimensions{{"N", 2}, {"length", 128}}));
}

TEST_F(OnnxDimsTest, OrFromTheOnlyFieldThatFits) {
  Input("input.1", {"N", "3", "H", "W"});
  EXPECT_EQ(Bound(Training(2, {{"picture", {DType::kU8, {3, 32, 40}}}, {"y", {DType::kI64, {}}}})),
            (Dimensions{{"N", 2}, {"H", 32}, {"W", 40}}));
}

TEST_F(OnnxDimsTest, ImagesMayLackChannelsOrHaveThemLast) {
  Input("x", {"N", "1", "H", "W"});
  EXPECT_EQ(Bound(Training(2, {{"x", {DType::kU8, {28, 30}}}}))["W"], 30);
  model_ = EmptyOnnxModel();
  Input("x", {"N", "3", "H", "W"});
  const Dimensions last = Bound(Training(2, {{"x", {DType::kU8, {20, 24, 3}}}}));
  EXPECT_EQ(last.at("H"), 20);
  EXPECT_EQ(last.at("W"), 24);
}

TEST_F(OnnxDimsTest, TwoFieldsThatFitDecideNothing) {
  Input("x", {"N", "length"});
  EXPECT_THAT(ErrorOf(Training(2, {{"a", {DType::kF32, {5}}}, {"b", {DType::kF32, {6}}}})),
              HasSubstr("dimension 'length' has no size, and neither --batch nor the data give "
                        "one. hint: --dim length=N"));
}

TEST_F(OnnxDimsTest, DimStandsAndConflictsAreNamed) {
  Input("x", {"N", "length"});
  ModelRequest request = Training(2);
  request.dims = {{"length", 9}};
  EXPECT_EQ(Bound(request).at("length"), 9);
  request.fields = {{"x", {DType::kF32, {5}}}};
  EXPECT_THAT(ErrorOf(request), HasSubstr("'length' is 5 by the data, and 9 elsewhere"));
}

TEST_F(OnnxDimsTest, OneNameHasOneExtent) {
  Input("x", {"N", "length"});
  Input("mask", {"N", "length"});
  EXPECT_THAT(ErrorOf(Training(2, {{"x", {DType::kF32, {5}}}, {"mask", {DType::kF32, {6}}}})),
              HasSubstr("'length' is 6 by the data, and 5 elsewhere"));
}

TEST_F(OnnxDimsTest, GivenArraysSayEverything) {
  Input("x", {"N", "length"});
  ModelRequest request = Training(32);
  request.training = false;
  request.arrays = {{"x", Tensor(TensorType{DType::kF32, {3, 11}})}};
  EXPECT_EQ(Bound(request), (Dimensions{{"N", 3}, {"length", 11}}));
}

}  // namespace
}  // namespace ridge
