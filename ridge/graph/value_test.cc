#include "ridge/graph/value.h"

#include <gtest/gtest.h>

#include "ridge/graph/builder.h"

namespace ridge {
namespace {

const TensorType kRow{DType::kF32, {4}};

std::vector<std::string> Operators(const GraphBuilder& b) {
  std::vector<std::string> names;
  for (const Node& node : b.graph().nodes()) names.push_back(node.op->name);
  return names;
}

TEST(Value, AnExpressionAppendsANodeForEachOperation) {
  GraphBuilder b("net");
  const Value x = b.Input("x", kRow), y = b.Input("y", kRow);
  const Value sum = Sum(y);
  const Value z = -(x * y) + sum;
  EXPECT_EQ(z.type(), kRow);
  EXPECT_EQ(Operators(b), (std::vector<std::string>{"reduce_sum", "mul", "neg", "add"}));
}

TEST(Value, ANumberBecomesAConstantOfTheOtherOperandsType) {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kU8, {4}});
  const Value y = 7 - x;
  ASSERT_TRUE(b.ok()) << b.status().message();
  const Value seven = b.At(b.graph().nodes()[0].inputs[0]);
  EXPECT_EQ(seven.type(), (TensorType{DType::kU8, {}}));
  EXPECT_EQ(b.graph().value(seven.id).constant.at(0), 7);
  EXPECT_EQ(y.dtype(), DType::kU8);
}

TEST(Value, AnInvalidOperandMakesTheResultInvalidAndAddsNothing) {
  GraphBuilder b("net");
  const Value x = b.Input("x", kRow), none;
  for (const Value y : {x + none, none * 2, Where(x > 0, x, none), Sum(none), MatMul(none, x),
                        Op("matmul", {none, none})}) {
    EXPECT_FALSE(y.valid());
  }
  EXPECT_EQ(OpOutputs("max_pool", {none}).size(), 2u);
  EXPECT_TRUE(b.ok());
  EXPECT_EQ(Operators(b), (std::vector<std::string>{"greater"}));
}

TEST(Value, TheBuilderKeepsTheFirstErrorAndAddsNothingAfterIt) {
  GraphBuilder b("net");
  const Value x = b.Input("x", kRow), y = b.Input("y", {DType::kF32, {3}});
  const Value sum = x + y;
  EXPECT_FALSE(sum.valid());
  const std::string first = b.status().message();
  EXPECT_NE(first.find("do not broadcast"), std::string::npos) << first;
  EXPECT_FALSE(Softmax(x, 5).valid());
  EXPECT_FALSE(Exp(x).valid());
  EXPECT_EQ(b.status().message(), first);
  EXPECT_TRUE(b.graph().nodes().empty());
}

TEST(AttrMap, APlainInitializerHasTheKindOfItsAttribute) {
  const AttrMap attrs = {{"integer", 1},       {"flag", true},      {"number", 0.5},
                         {"text", "x"},        {"list", {1, 2}},    {"empty", {}},
                         {"none", ""},         {"to", DType::kF16}, {"dims", Dims{3}},
                         {"long", int64_t{-1}}};
  EXPECT_EQ(attrs.integer("integer"), 1);
  EXPECT_EQ(attrs.integer("flag"), 1);
  EXPECT_EQ(attrs.number("number"), 0.5);
  EXPECT_EQ(attrs.text("text"), "x");
  EXPECT_EQ(attrs.integers("list"), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(attrs.integers("empty").empty());
  EXPECT_EQ(attrs.text("none"), "");
  EXPECT_EQ(attrs.text("to"), "f16");
  EXPECT_EQ(attrs.integers("dims"), Dims{3});
  EXPECT_EQ(attrs.integer("long"), -1);
}

}  // namespace
}  // namespace ridge
