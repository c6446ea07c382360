// Every operator through its case file, on the reference; and the checks themselves on operators
// that are wrong on purpose.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ridge/graph/axes.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_axes.h"
#include "tests/ops/check_case.h"

namespace ridge {
namespace {

std::string Stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string CheckCase(const OpDef& op, const OpCase& op_case) {
  if (op_case.kind == OpCase::Kind::kError) return CheckError(op, op_case);
  if (const std::string wrong = CheckAxes(op, op_case); !wrong.empty()) return wrong;
  if (op_case.kind == OpCase::Kind::kValue) return CheckValues(op, op_case);
  const std::string wrong = CheckRounding(op, op_case);
  return wrong.empty() ? CheckGradients(op, op_case) : wrong;
}

class OperatorCases : public testing::TestWithParam<std::string> {};

TEST_P(OperatorCases, Hold) {
  const Result<CaseFile> file = ReadCaseFile(GetParam());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const OpDef* op = FindOp(file->op);
  ASSERT_NE(op, nullptr) << GetParam() << ": there is no operator '" << file->op << "'";
  EXPECT_FALSE(file->cases.empty()) << GetParam() << " has no cases";
  for (const OpCase& op_case : file->cases) {
    const std::string wrong = CheckCase(*op, op_case);
    if (!wrong.empty()) {
      ADD_FAILURE() << fmt::format("{}:{}: {}\n  {}", file->path, op_case.line, op_case.text,
                                   wrong);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OperatorCases, testing::ValuesIn(AllCaseFiles()),
                         [](const auto& info) { return Stem(info.param); });

TEST(OperatorCaseFiles, ExistForEveryOperator) {
  std::vector<std::string> have;
  for (const std::string& path : AllCaseFiles()) have.push_back(Stem(path));
  for (const OpDef& op : AllOps()) {
    EXPECT_TRUE(std::find(have.begin(), have.end(), op.name) != have.end())
        << "tests/ops/" << op.name << ".case is missing";
  }
}

TEST(OperatorRecords, AreComplete) {
  for (const OpDef& op : AllOps()) {
    EXPECT_FALSE(op.doc.empty()) << op.name;
    EXPECT_FALSE(op.output_names.empty()) << op.name;
    EXPECT_NE(op.infer_types, nullptr) << op.name;
    EXPECT_TRUE(op.reference != nullptr || op.elementwise != nullptr) << op.name;
    for (const std::string& name : op.required_attrs)
      EXPECT_TRUE(op.attr_defaults.contains(name)) << op.name << " " << name;
    const bool variadic = !op.input_names.empty() && op.input_names.back().ends_with("...");
    for (const auto& [output, input] : op.in_place) {
      EXPECT_TRUE(variadic || static_cast<size_t>(output) < op.output_names.size()) << op.name;
      EXPECT_TRUE(variadic || static_cast<size_t>(input) < op.input_names.size()) << op.name;
    }
  }
}

// The checks can fail: y = x^2 with parts of its record wrong.

void WrongGradient(GradBuilder& g) {
  g.dx() = g.dy() * g.x();  // without the 2
}

// Right but for elements past the 24th.
void GradientOfTheFirst(GradBuilder& g) {
  const Value dy = g.dy();
  const Value right = dy * 2 * g.x();
  const int64_t count = dy.dims()[0];
  Tensor mask({DType::kF64, {count}});
  for (int64_t i = 0; i < std::min<int64_t>(count, 24); ++i) mask.as_mutable<double>()[i] = 1;
  g.dx() = right * g.b().Constant(mask);
}

OpCase OneCase(const std::string& line) {
  Result<CaseFile> file = ParseCaseFile(line, "square.case");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file->cases.at(0);
}

TEST(CaseChecks, FindAWrongGradient) {
  OpDef op = *FindOp("square");
  EXPECT_EQ(CheckGradients(op, OneCase("case f32[5]")), "");
  op.gradient = WrongGradient;
  EXPECT_NE(CheckGradients(op, OneCase("case f32[5]")), "");
}

TEST(CaseChecks, FindAWrongElementAmongMany) {
  OpDef op = *FindOp("square");
  op.gradient = GradientOfTheFirst;
  EXPECT_EQ(CheckGradients(op, OneCase("case f32[24]")), "");
  EXPECT_NE(CheckGradients(op, OneCase("case f32[5000]")), "");
}

TEST(CaseChecks, FindWrongAxes) {
  OpDef op = *FindOp("softmax");
  EXPECT_EQ(CheckAxes(op, OneCase("case f32[4,6]")), "");
  op.axes = PointwiseAxes;
  EXPECT_NE(CheckAxes(op, OneCase("case f32[4,6]")), "");
  OpDef sum = *FindOp("reduce_sum");
  EXPECT_EQ(CheckAxes(sum, OneCase("case f32[4,6] axes=[0]")), "");
  sum.axes = AveragedAxes;
  EXPECT_NE(CheckAxes(sum, OneCase("case f32[4,6] axes=[0]")), "");
}

TEST(CaseChecks, FindAMissingGradient) {
  OpDef op = *FindOp("square");
  op.gradient = [](GradBuilder&) {};
  EXPECT_NE(CheckGradients(op, OneCase("case f32[1]")), "");
}

TEST(CaseChecks, FindWrongValuesTypesAndErrors) {
  const OpDef& op = *FindOp("square");
  EXPECT_EQ(CheckValues(op, OneCase("value f32[2]=2,3\n  4,9")), "");
  EXPECT_NE(CheckValues(op, OneCase("value f32[2]=2,3\n  4,9.00001")), "");
  EXPECT_NE(CheckValues(op, OneCase("value f64[1]=3\n  9.00000000002")), "");
  EXPECT_NE(CheckValues(op, OneCase("value f32[2]=2,3\n  f64[2]=4,9")), "");
  EXPECT_NE(CheckValues(op, OneCase("value f32[2]=2,3\n  4")), "");
  EXPECT_NE(CheckValues(op, OneCase("value f32[1]=nan\n  0")), "");
  EXPECT_NE(CheckError(op, OneCase("error f32[2]\n  square 'y': no")), "");
  EXPECT_NE(CheckError(op, OneCase("error bool[2]\n  square 'y': no")), "");
}

TEST(CaseFiles, RefuseLinesTheyDoNotKnow) {
  const auto error = [](const char* text) {
    return ParseCaseFile(text, "a.case").status().message();
  };
  EXPECT_EQ(error("cases f32[2]"), "a.case:1: 'cases' is not case, error or value");
  EXPECT_EQ(
      error("\ncase f33[2]"),
      "a.case:2: expected a type such as f32[2,3], found 'f33'; element types: f64 f32 f16 bf16 "
      "i64 i32 u8 i8 bool");
  EXPECT_EQ(error("  1,2"), "a.case:1: an indented line needs a line above it");
  EXPECT_EQ(error("case f32[2]\n  1,2"), "a.case:2: a case takes no indented line");
  EXPECT_EQ(error("error f32[2]\ncase f32[1]"), "a.case:1: what is expected must follow, indented");
  EXPECT_EQ(error("value f32[2]=1\n  1"), "a.case:1: 'f32[2]=1' has 1 values, its type 2");
  EXPECT_EQ(error("case f32[2] range=1"), "a.case:1: range is '1'; LO..HI is needed");
}

TEST(CaseFiles, ReadAttributesAndOptions) {
  const OpCase c = OneCase(
      "case f32[2,3], _, i64[] axis=-1 s=\"a # b\" l=[1, 2] d=[0.5,1] v=1.5 "
      "range2=3..4 loss=[0] nograd=1  # why");
  EXPECT_EQ(c.inputs.size(), 3u);
  EXPECT_EQ(c.inputs[1], OpCall::Absent());
  EXPECT_EQ(c.attrs.integer("axis"), -1);
  EXPECT_EQ(c.attrs.text("s"), "a # b");
  EXPECT_EQ(c.attrs.integers("l"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(std::get<std::vector<double>>(c.attrs.at("d")), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(c.attrs.number("v"), 1.5);
  EXPECT_EQ(c.attrs.size(), 5u);
  EXPECT_FALSE(c.check_gradient);
  EXPECT_EQ(c.loss_outputs, std::vector<int64_t>{0});
  const double drawn = DrawInput(c, 2, DType::kI64).at(0);
  EXPECT_TRUE(drawn == 3 || drawn == 4) << drawn;
}

}  // namespace
}  // namespace ridge
