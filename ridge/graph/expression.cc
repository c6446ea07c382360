// Types come from the steps' OpDefs: a step is inferred like a node of its operator.
#include "ridge/graph/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "ridge/graph/text_attr.h"
#include "ridge/graph/text_lexer.h"

namespace ridge {
namespace {

Status BadExpression(const std::string& text) {
  return Status(ErrorCode::kInvalidModel, "expression: " + text);
}

std::string PrintOperand(const ExpressionOperand& operand) {
  return fmt::format("{}{}", operand.is_step ? 't' : 'i', operand.index);
}

std::string PrintStep(const ExpressionStep& step) {
  std::string out = step.op->name + "(";
  for (size_t i = 0; i < step.operands.size(); ++i) {
    out += (i > 0 ? "," : "") + PrintOperand(step.operands[i]);
  }
  for (const auto& [name, value] : step.attrs) {
    const auto declared = step.op->attr_defaults.find(name);
    if (declared != step.op->attr_defaults.end() && SameAttr(declared->second, value)) continue;
    out += fmt::format(",{}={}", name, PrintAttr(value));
  }
  return out + ")";
}

// The number after a letter: "t12" -> 12.  -1 when `name` is not of this form.
int32_t IndexOf(std::string_view name, char letter) {
  if (name.size() < 2 || name.size() > 4 || name[0] != letter) return -1;
  int32_t index = -1;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 1, end, index);
  return error == std::errc() && rest == end ? index : -1;
}

// `min=0` where a number is declared: the step is evaluated with these attributes as they are.
void ConvertToDeclared(const OpDef& op, const std::string& name, Attr& value) {
  const auto declared = op.attr_defaults.find(name);
  if (declared == op.attr_defaults.end()) return;
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer != nullptr && std::holds_alternative<double>(declared->second)) {
    value = static_cast<double>(*integer);
  }
}

class ExpressionReader {
 public:
  explicit ExpressionReader(std::string_view text) : reader_(text, "") {}

  Result<Expression> Read() {
    while (reader_.peek().kind != Token::Kind::kEnd) {
      RIDGE_RETURN_IF_ERROR(ReadStatement());
      if (reader_.peek().kind == Token::Kind::kEnd) break;
      RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol(';', "between statements"));
    }
    if (expression_.outputs.empty()) return BadExpression("there is no output o0");
    return std::move(expression_);
  }

 private:
  Status ReadStatement() {
    RIDGE_ASSIGN_OR_RETURN(const std::string name, reader_.ExpectName("t0=... or o0=..."));
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('=', "after '" + name + "'"));
    const auto step = static_cast<int32_t>(expression_.steps.size());
    const auto output = static_cast<int32_t>(expression_.outputs.size());
    if (IndexOf(name, 't') == step) return ReadStep();
    if (IndexOf(name, 'o') == output) return ReadOutput();
    return BadExpression(fmt::format("'{}' stands where t{} or o{} should be", name, step, output));
  }

  Status ReadOutput() {
    RIDGE_ASSIGN_OR_RETURN(const std::string name, reader_.ExpectName("a step"));
    RIDGE_ASSIGN_OR_RETURN(const ExpressionOperand operand, OperandOf(name));
    if (!operand.is_step) {
      return BadExpression(fmt::format("the output o{} is the input i{}; it must be a step",
                                       expression_.outputs.size(), operand.index));
    }
    if (expression_.outputs.size() >= kMostExpressionOutputs) {
      return BadExpression(fmt::format("more than {} outputs", kMostExpressionOutputs));
    }
    expression_.outputs.push_back(operand.index);
    return Status();
  }

  Status ReadStep() {
    if (expression_.steps.size() >= kMostExpressionSteps) {
      return BadExpression(fmt::format("more than {} steps", kMostExpressionSteps));
    }
    RIDGE_ASSIGN_OR_RETURN(const std::string name, reader_.ExpectName("an operator"));
    ExpressionStep step;
    step.op = FindOp(name);
    if (step.op == nullptr || step.op->elementwise == nullptr) {
      return BadExpression(fmt::format("'{}' is no pointwise operator", name));
    }
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('(', "after '" + name + "'"));
    RIDGE_RETURN_IF_ERROR(ReadArguments(step));
    for (const auto& [attr, value] : step.op->attr_defaults) step.attrs.try_emplace(attr, value);
    expression_.steps.push_back(std::move(step));
    return Status();
  }

  Status ReadArguments(ExpressionStep& step) {
    bool first = true;
    while (!reader_.TakeSymbol(')')) {
      if (!first) RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol(',', "or ')' in a step"));
      first = false;
      RIDGE_ASSIGN_OR_RETURN(const std::string name,
                             reader_.ExpectName("an operand or an attribute"));
      if (!reader_.TakeSymbol('=')) {
        RIDGE_ASSIGN_OR_RETURN(const ExpressionOperand operand, OperandOf(name));
        step.operands.push_back(operand);
        continue;
      }
      RIDGE_ASSIGN_OR_RETURN(Attr value, ReadAttr(reader_, /*depth=*/0));
      ConvertToDeclared(*step.op, name, value);
      if (!step.attrs.emplace(name, std::move(value)).second) {
        return BadExpression(fmt::format("the attribute '{}' is given twice", name));
      }
    }
    return Status();
  }

  Result<ExpressionOperand> OperandOf(const std::string& name) {
    const int32_t input = IndexOf(name, 'i'), step = IndexOf(name, 't');
    if (input >= 0 && input < static_cast<int32_t>(kMostExpressionInputs)) {
      expression_.inputs = std::max(expression_.inputs, static_cast<size_t>(input) + 1);
      return ExpressionOperand{false, input};
    }
    if (step >= 0 && step < static_cast<int32_t>(expression_.steps.size())) {
      return ExpressionOperand{true, step};
    }
    return BadExpression(fmt::format("'{}' is no input (i0 to i{}) and no earlier step", name,
                                     kMostExpressionInputs - 1));
  }

  TokenReader reader_;
  Expression expression_;
};

Result<DType> InferStep(const ExpressionStep& step, const ExpressionTypes& so_far,
                        std::span<const TensorType> inputs, const std::string& where) {
  OpCall call;
  call.where = where;
  call.attrs = step.attrs;
  for (const ExpressionOperand& operand : step.operands) {
    const auto index = static_cast<size_t>(operand.index);
    call.inputs.push_back(
        {operand.is_step ? so_far.steps[index] : inputs[index].dtype, so_far.dims});
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferCall(*step.op, call));
  if (types.size() == 1 && types[0].dims == so_far.dims) return types[0].dtype;
  return CallError(
      call, fmt::format("{} does not keep the shape {}", step.op->name, DimsToString(so_far.dims)));
}

double RoundTo(DType dtype, double value) {
  if (dtype == DType::kF64) return value;
  uint64_t storage = 0;
  StoreFromDouble(dtype, &storage, 0, value);
  return LoadAsDouble(dtype, &storage, 0);
}

}  // namespace

Result<Expression> ExpressionOf(const OpDef& op, const OpCall& call) {
  if (op.name == "fused") return ParseExpression(call.text("expr"));
  Expression single;
  single.inputs = call.inputs.size();
  ExpressionStep step{&op, call.attrs, {}};
  for (size_t i = 0; i < call.inputs.size(); ++i)
    step.operands.push_back({/*is_step=*/false, static_cast<int32_t>(i)});
  single.steps.push_back(std::move(step));
  single.outputs = {0};
  return single;
}

std::string PrintExpression(const Expression& expression) {
  std::string out;
  for (size_t i = 0; i < expression.steps.size(); ++i) {
    out += fmt::format("t{}={};", i, PrintStep(expression.steps[i]));
  }
  for (size_t i = 0; i < expression.outputs.size(); ++i) {
    out += fmt::format("{}o{}=t{}", i > 0 ? ";" : "", i, expression.outputs[i]);
  }
  return out;
}

Result<Expression> ParseExpression(std::string_view text) { return ExpressionReader(text).Read(); }

Result<ExpressionTypes> InferExpression(const Expression& expression,
                                        std::span<const TensorType> inputs,
                                        const std::string& where) {
  if (expression.inputs != inputs.size()) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: the expression names {} inputs; {} are given", where,
                              expression.inputs, inputs.size()));
  }
  ExpressionTypes types;
  for (const TensorType& input : inputs) {
    Result<Dims> dims = BroadcastDims(types.dims, input.dims);
    if (!dims.ok()) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("{}: {}", where, dims.status().message()));
    }
    types.dims = *std::move(dims);
  }
  for (size_t i = 0; i < expression.steps.size(); ++i) {
    const std::string step = fmt::format("{}, step t{}", where, i);
    RIDGE_ASSIGN_OR_RETURN(const DType dtype, InferStep(expression.steps[i], types, inputs, step));
    types.steps.push_back(dtype);
  }
  return types;
}

void EvaluateExpression(const Expression& expression, const ExpressionTypes& types,
                        std::span<const double> inputs, std::span<double> values) {
  std::array<double, kMostExpressionInputs> args{};
  for (size_t i = 0; i < expression.steps.size(); ++i) {
    const ExpressionStep& step = expression.steps[i];
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const auto index = static_cast<size_t>(step.operands[k].index);
      args[k] = step.operands[k].is_step ? values[index] : inputs[index];
    }
    const double value = step.op->elementwise({args.data(), step.operands.size()}, step.attrs);
    values[i] = RoundTo(types.steps[i], value);
  }
}

}  // namespace ridge
