#include "ridge/graph/expression.h"

#include <gtest/gtest.h>

#include <random>

namespace ridge {
namespace {

std::string ErrorOf(std::string_view text) {
  const Result<Expression> expression = ParseExpression(text);
  EXPECT_FALSE(expression.ok()) << text;
  return expression.ok() ? "" : expression.status().message();
}

TEST(Expression, PrintsWhatItRead) {
  for (const char* text :
       {"t0=relu(i0);o0=t0", "t0=add(i0,i1);t1=clip(t0,max=6.0,min=0.0);o0=t1",
        "t0=greater(i1,i0);t1=where(t0,i0,i1);t2=cast(t1,to=\"f16\");o0=t0;o1=t2"}) {
    const Result<Expression> expression = ParseExpression(text);
    ASSERT_TRUE(expression.ok()) << expression.status().message();
    EXPECT_EQ(PrintExpression(*expression), text);
  }
}

TEST(Expression, TakesIntegersWhereNumbersAreDeclared) {
  const Result<Expression> expression = ParseExpression("t0=clip(i0,min=0);o0=t0");
  ASSERT_TRUE(expression.ok());
  EXPECT_EQ(PrintExpression(*expression), "t0=clip(i0,min=0.0);o0=t0");
}

TEST(Expression, RefusesWhatIsNone) {
  EXPECT_EQ(ErrorOf(""), "expression: there is no output o0");
  EXPECT_EQ(ErrorOf("t0=relu(i16);o0=t0"),
            "expression: 'i16' is no input (i0 to i15) and no earlier step");
  EXPECT_EQ(ErrorOf("t0=relu(t0);o0=t0"),
            "expression: 't0' is no input (i0 to i15) and no earlier step");
  EXPECT_EQ(ErrorOf("t0=softmax(i0);o0=t0"), "expression: 'softmax' is no pointwise operator");
  EXPECT_EQ(ErrorOf("t0=clip(i0,min=0,min=1);o0=t0"),
            "expression: the attribute 'min' is given twice");
  EXPECT_EQ(ErrorOf("t0=relu(i0);o0=t0;o2=t0"), "expression: 'o2' stands where t1 or o1 should be");
}

TEST(Expression, HoldsNoMoreThanItsLimits) {
  std::string steps = "t0=relu(i0);";
  for (size_t i = 1; i <= kMostExpressionSteps; ++i) {
    steps += "t" + std::to_string(i) + "=relu(t" + std::to_string(i - 1) + ");";
  }
  EXPECT_EQ(ErrorOf(steps + "o0=t0"), "expression: more than 32 steps");
  std::string outputs = "t0=relu(i0)";
  for (size_t i = 0; i <= kMostExpressionOutputs; ++i) {
    outputs += ";o" + std::to_string(i) + "=t0";
  }
  EXPECT_EQ(ErrorOf(outputs), "expression: more than 8 outputs");
}

TEST(Expression, GivesEachStepItsDTypeAndTheBroadcastShape) {
  const Result<Expression> expression =
      ParseExpression("t0=greater(i0,i1);t1=where(t0,i0,i1);t2=cast(t1,to=\"f64\");o0=t2");
  const std::vector<TensorType> inputs = {{DType::kF32, {2, 1}}, {DType::kF32, {3}}};
  const Result<ExpressionTypes> types = InferExpression(*expression, inputs, "fused 'y'");
  ASSERT_TRUE(types.ok()) << types.status().message();
  EXPECT_EQ(types->dims, (Dims{2, 3}));
  EXPECT_EQ(types->steps, (std::vector<DType>{DType::kBool, DType::kF32, DType::kF64}));
}

// 1 + 2^-12 is not in f16: the sum is rounded before the next step sees it.
TEST(Expression, RoundsEachStepToItsDType) {
  const Result<Expression> expression = ParseExpression("t0=add(i0,i1);t1=sub(t0,i0);o0=t1");
  const std::vector<TensorType> inputs = {{DType::kF16, {}}, {DType::kF16, {}}};
  const Result<ExpressionTypes> types = InferExpression(*expression, inputs, "fused 'y'");
  ASSERT_TRUE(types.ok());
  std::vector<double> values(2);
  EvaluateExpression(*expression, *types, std::vector<double>{1, 0x1p-12}, values);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 0);
}

TEST(Expression, DamagedTextNeverBreaksTheReader) {
  std::mt19937 random(3);
  const std::string valid =
      "t0=add(i0,i1);t1=clip(t0,max=6.0,min=0.0);t2=cast(t1,to=\"f16\");o0=t2";
  const std::string letters = "()=,;\"tio0123456789.-x ";
  const std::vector<TensorType> inputs(2, TensorType{DType::kF32, {2}});
  for (int round = 0; round < 20000; ++round) {
    std::string text = valid;
    for (uint32_t e = 0; e <= random() % 3; ++e) {
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    const Result<Expression> expression = ParseExpression(text);
    if (!expression.ok()) continue;
    const Result<ExpressionTypes> types = InferExpression(*expression, inputs, "fused 'y'");
    if (!types.ok()) continue;
    std::vector<double> values(expression->steps.size());
    EvaluateExpression(*expression, *types, std::vector<double>{0.5, 1}, values);
    const Result<Expression> again = ParseExpression(PrintExpression(*expression));
    ASSERT_TRUE(again.ok()) << text;
    ASSERT_EQ(PrintExpression(*again), PrintExpression(*expression));
  }
}

}  // namespace
}  // namespace ridge
