// What case files can't say: gradients at kinks and zeros, the shape of gradient graphs, costs, and
// that an epilogue gives the bits of separate nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/ops/shared/epilogue.h"

namespace ridge {
namespace {

using Doubles = std::vector<double>;

Tensor F64(Dims dims, const Doubles& values) {
  Tensor tensor({DType::kF64, std::move(dims)});
  std::copy(values.begin(), values.end(), tensor.as_mutable<double>());
  return tensor;
}

Tensor F64(const Doubles& values) { return F64({static_cast<int64_t>(values.size())}, values); }

Doubles ToDoubles(const Tensor& tensor) {
  return Doubles(tensor.as<double>(), tensor.as<double>() + tensor.elements());
}

// d(sum of op(inputs)) / d(input `wrt`).
Doubles GradOf(const char* op, const std::vector<Tensor>& inputs, size_t wrt, AttrMap attrs = {}) {
  GraphBuilder b("test");
  std::vector<Value> values;
  for (const Tensor& tensor : inputs) values.push_back(b.Constant(tensor));
  const Value y = Op(op, values, std::move(attrs));
  Result<std::vector<Value>> grads = AppendGradients(b, Sum(y), {values[wrt]});
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  if (!grads.ok()) return {};
  const Result<std::vector<Tensor>> all = EvaluateGraph(b.graph(), {});
  EXPECT_TRUE(all.ok()) << all.status().message();
  return ToDoubles((*all)[static_cast<size_t>((*grads)[0].id)]);
}

Doubles UnaryGrad(const char* op, const Doubles& x, AttrMap attrs = {}) {
  return GradOf(op, {F64(x)}, 0, std::move(attrs));
}

TEST(Gradients, AreZeroAtTheKinkOfReluAndAbs) {
  EXPECT_EQ(UnaryGrad("relu", {-1, 0, 2}), (Doubles{0, 0, 1}));
  EXPECT_EQ(UnaryGrad("abs", {-1, 0, 2}), (Doubles{-1, 0, 1}));
}

TEST(Gradients, AreSharedHalfAndHalfByEqualOperands) {
  EXPECT_EQ(GradOf("maximum", {F64({1, 2, 3}), F64({2, 2, 2})}, 0), (Doubles{0, 0.5, 1}));
  EXPECT_EQ(GradOf("maximum", {F64({1, 2, 3}), F64({2, 2, 2})}, 1), (Doubles{1, 0.5, 0}));
  EXPECT_EQ(GradOf("minimum", {F64({1, 2, 3}), F64({2, 2, 2})}, 0), (Doubles{1, 0.5, 0}));
  EXPECT_EQ(GradOf("minimum", {F64({1, 2, 3}), F64({2, 2, 2})}, 1), (Doubles{0, 0.5, 1}));
}

TEST(Gradients, AreSharedByAllLargestElements) {
  const AttrMap attrs{{"axes", {1}}};
  const Tensor x = F64({2, 4}, {7, 1, 7, 7, 5, 6, 6, -1});
  const double third = 1.0 / 3;
  EXPECT_EQ(GradOf("reduce_max", {x}, 0, attrs), (Doubles{third, 0, third, third, 0, 0.5, 0.5, 0}));
  EXPECT_EQ(GradOf("reduce_min", {x}, 0, attrs), (Doubles{0, 1, 0, 0, 0, 0, 0, 1}));
}

TEST(Gradients, OfAProductAreThoseOfTheOthersAtZerosToo) {
  const AttrMap attrs{{"axes", {1}}};
  const Tensor x = F64({3, 3}, {2, 3, 4, 2, 0, 4, 0, 3, 0});
  EXPECT_EQ(GradOf("reduce_prod", {x}, 0, attrs), (Doubles{12, 8, 6, 0, 8, 0, 0, 0, 0}));
}

TEST(Gradients, OfPowAreFiniteAtBaseZero) {
  const std::vector<Tensor> inputs{F64({0, 0, 0, -2, 3}), F64({0, 1, 2, 3, 0})};
  EXPECT_EQ(GradOf("pow", inputs, 0), (Doubles{0, 1, 0, 12, 0}));
  const Doubles db = GradOf("pow", inputs, 1);
  EXPECT_EQ(Doubles(db.begin(), db.begin() + 3), (Doubles{0, 0, 0}));
  EXPECT_TRUE(std::isnan(db[3]));  // (-2)^b has no slope in b
  EXPECT_EQ(db[4], std::log(3.0));
}

TEST(Gradients, FlowThroughClipInsideItsBoundsOnly) {
  const AttrMap attrs{{"min", -1.0}, {"max", 2.0}};
  EXPECT_EQ(UnaryGrad("clip", {-1.5, -1, 0, 2, 2.5}, attrs), (Doubles{0, 0, 1, 0, 0}));
}

TEST(Gradients, DoNotFlowThroughSteps) {
  for (const char* op : {"sign", "floor", "ceil", "round", "stop_gradient"})
    EXPECT_EQ(UnaryGrad(op, {-0.7, 0, 1.2}), (Doubles{0, 0, 0})) << op;
}

TEST(Gradients, OfTheUnchosenSideOfWhereAreZeroEvenWhereItIsNan) {
  Tensor condition({DType::kBool, {2}});
  condition.as_mutable<uint8_t>()[1] = 1;
  const std::vector<Tensor> inputs{condition, F64({NAN, 2}), F64({3, NAN})};
  EXPECT_EQ(GradOf("where", inputs, 1), (Doubles{0, 1}));
  EXPECT_EQ(GradOf("where", inputs, 2), (Doubles{1, 0}));
}

// y = x w + bias or the convolution, with x and w of bf16 and a wide bias: the gradient of each
// wanted value has its type.
std::vector<TensorType> WideBiasGrads(const char* op, bool weight_too) {
  GraphBuilder b("test");
  const bool conv = std::string(op) == "conv";
  const Value x = b.Input("x", {DType::kBF16, conv ? Dims{2, 3, 4, 4} : Dims{5, 3}});
  const Value w =
      b.Parameter("w", {DType::kBF16, conv ? Dims{2, 3, 3, 3} : Dims{3, 2}}, Init::Zeros());
  const Value bias = b.Parameter("bias", {DType::kF32, {2}}, Init::Zeros());
  const Value y = Op(op, {x, w, bias});
  const Value loss = Sum(Cast(y, DType::kF32));
  std::vector<Value> wanted = {bias};
  if (weight_too) wanted.push_back(w);
  const Result<std::vector<Value>> grads = AppendGradients(b, loss, wanted);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  std::vector<TensorType> types;
  for (size_t i = 0; grads.ok() && i < grads->size(); ++i) types.push_back((*grads)[i].type());
  return types;
}

TEST(Gradients, OfAWideBiasOfAShortProductAreWide) {
  const TensorType bias{DType::kF32, {2}};
  for (const char* op : {"matmul", "conv"}) {
    EXPECT_EQ(WideBiasGrads(op, false), (std::vector<TensorType>{bias})) << op;
    const TensorType w{DType::kBF16, op[0] == 'c' ? Dims{2, 3, 3, 3} : Dims{3, 2}};
    EXPECT_EQ(WideBiasGrads(op, true), (std::vector<TensorType>{bias, w})) << op;
  }
}

// 512 ones and a last 0.5 in bf16: a sum of that width would stop at 512.
double WideBiasSum(const char* op, bool weight_too) {
  GraphBuilder b("test");
  const bool conv = std::string(op) == "conv";
  Tensor dy({DType::kBF16, conv ? Dims{513, 1, 1, 1} : Dims{513, 1}});
  for (int64_t i = 0; i < 513; ++i)
    StoreFromDouble(DType::kBF16, dy.mutable_data(), i, i == 512 ? 0.5 : 1);
  const Value x = b.Input("x", dy.type());
  const Value w =
      b.Parameter("w", {DType::kBF16, conv ? Dims{1, 1, 1, 1} : Dims{1, 1}}, Init::Zeros());
  const Value bias = b.Parameter("bias", {DType::kF32, {1}}, Init::Zeros());
  const Value weights = b.Constant(dy);
  const Value y = Op(op, {x, w, bias}) * weights;
  const Value loss = Sum(Cast(y, DType::kF32));
  std::vector<Value> wanted = {bias};
  if (weight_too) wanted.push_back(w);
  const Result<std::vector<Value>> grads = AppendGradients(b, loss, wanted);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  const Result<std::vector<Tensor>> all = EvaluateGraph(b.graph(), {{"x", dy}});
  EXPECT_TRUE(all.ok()) << all.status().message();
  if (!grads.ok() || !all.ok()) return 0;
  return (*all)[static_cast<size_t>((*grads)[0].id)].at(0);
}

TEST(Gradients, OfAWideBiasAreNotRoundedToTheProductsType) {
  for (const char* op : {"matmul", "conv"}) {
    EXPECT_EQ(WideBiasSum(op, /*weight_too=*/false), 512.5) << op;
    EXPECT_EQ(WideBiasSum(op, /*weight_too=*/true), 512.5) << op;
  }
}

// The gradient graph of a [3,5,4] times a weight of rank 2, for all transpositions.
class SharedWeight : public testing::TestWithParam<int> {};

TEST_P(SharedWeight, GetsItsGradientFromOneProductOfAllRows) {
  const bool ta = GetParam() % 2 != 0, tb = GetParam() / 2 != 0;
  GraphBuilder b("test");
  const Value x = b.Input("x", {DType::kF32, ta ? Dims{3, 4, 5} : Dims{3, 5, 4}});
  const Value w = b.Parameter("w", {DType::kF32, tb ? Dims{2, 4} : Dims{4, 2}}, Init::Zeros());
  const Value y = MatMul(x, w, ta, tb);
  const size_t before = b.graph().nodes().size();
  ASSERT_TRUE(AppendGradients(b, Sum(y), {w}).ok());
  std::vector<Dims> products;
  for (size_t n = before; n < b.graph().nodes().size(); ++n) {
    const Node& node = b.graph().nodes()[n];
    if (node.op->name != "matmul") continue;
    for (ValueId id : node.inputs) products.push_back(b.graph().type(id).dims);
  }
  const Dims rows_of_x{15, 4}, rows_of_dy{15, 2};
  ASSERT_EQ(products.size(), 2u);
  EXPECT_TRUE(std::is_permutation(products.begin(), products.end(),
                                  std::vector<Dims>{rows_of_x, rows_of_dy}.begin()));
}

INSTANTIATE_TEST_SUITE_P(Transpositions, SharedWeight, testing::Range(0, 4));

OpCall MatMulCall(std::vector<TensorType> inputs, AttrMap attrs) {
  OpCall call{.where = "matmul 'y'", .inputs = std::move(inputs), .outputs = {}, .attrs = {}};
  call.attrs = std::move(attrs);
  Result<std::vector<TensorType>> outputs = InferCall(*FindOp("matmul"), call);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (outputs.ok()) call.outputs = *std::move(outputs);
  return call;
}

TEST(Costs, OfMatmulCountEachMultiplyAddTwice) {
  const TensorType a{DType::kF32, {3, 5, 4}}, b{DType::kF32, {4, 2}}, bias{DType::kF32, {2}};
  const OpDef& op = *FindOp("matmul");
  EXPECT_EQ(CallCost(op, MatMulCall({a, b}, {})).flops, 2 * 3 * 5 * 4 * 2);
  EXPECT_EQ(CallCost(op, MatMulCall({a, b, bias}, {})).flops, 2 * 3 * 5 * 4 * 2 + 30);
  const OpCall call = MatMulCall({a, b, bias}, {{"epilogue", "relu"}});
  EXPECT_EQ(CallCost(op, call).flops, 2 * 3 * 5 * 4 * 2 + 30 + 30);
  EXPECT_EQ(CallCost(op, call).bytes_read, 4 * (60 + 8 + 2));
  EXPECT_EQ(CallCost(op, call).bytes_written, 4 * 30);
}

TEST(Costs, OfAReshapeAreNothing) {
  OpCall call{.where = "", .inputs = {{DType::kF32, {6}}}, .outputs = {}, .attrs = {}};
  call.attrs["dims"] = std::vector<int64_t>{2, 3};
  call.outputs = *InferCall(*FindOp("reshape"), call);
  EXPECT_EQ(CallCost(*FindOp("reshape"), call).bytes_read, 0);
}

// x w + bias, then gelu, plus r, then relu, in `dtype`, with the steps inside or beside matmul.
Tensor WithEpilogue(DType dtype, bool inside) {
  GraphBuilder b("test");
  const Value x = b.Parameter("x", {dtype, {13, 17}}, Init::Normal(1));
  const Value w = b.Parameter("w", {dtype, {17, 7}}, Init::Normal(1));
  const Value bias = b.Parameter("bias", {dtype, {7}}, Init::Normal(1));
  const Value r = b.Parameter("r", {dtype, {13, 7}}, Init::Normal(1));
  Value y;
  if (inside) {
    y = Op("matmul", {x, w, bias, r}, {{"epilogue", "gelu,add,relu"}});
  } else {
    y = Relu(Gelu(Op("matmul", {x, w, bias})) + r);
  }
  const Result<std::vector<Tensor>> all = EvaluateGraph(b.graph(), {}, /*seed=*/3);
  EXPECT_TRUE(b.ok() && all.ok()) << b.status().message();
  return all.ok() ? (*all)[static_cast<size_t>(y.id)] : Tensor();
}

TEST(Epilogue, GivesTheBitsOfSeparateNodes) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_TRUE(WithEpilogue(dtype, true).same_bits(WithEpilogue(dtype, false)))
        << DTypeName(dtype);
  }
}

TEST(Epilogue, StepsAreUnaryPointwiseOperatorsAndAdd) {
  for (const char* name : {"relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "add"})
    EXPECT_TRUE(IsEpilogueStep(*FindOp(name))) << name;
  for (const char* name : {"mul", "cast", "reduce_sum", "where", "matmul"})
    EXPECT_FALSE(IsEpilogueStep(*FindOp(name))) << name;
  for (const char* text : {"relu,", ",relu", "relu,,relu", " relu", "mul"})
    EXPECT_FALSE(ParseEpilogue(text, "y").ok()) << text;
}

TEST(Epilogue, HasNoGradient) {
  GraphBuilder b("test");
  const Value w = b.Parameter("w", {DType::kF32, {3, 3}}, Init::Zeros());
  const Value y = Op("matmul", {w, w}, {{"epilogue", "relu"}});
  const Result<std::vector<Value>> grads = AppendGradients(b, Sum(y), {w});
  ASSERT_FALSE(grads.ok());
  EXPECT_EQ(grads.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(grads.status().message(),
            "matmul: no gradient with epilogue \"relu\": epilogues are made after differentiation. "
            "hint: write the steps as nodes of their own");
}

}  // namespace
}  // namespace ridge
