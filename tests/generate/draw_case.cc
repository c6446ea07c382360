// An operator as one of its case files (tests/ops/) has it: every differentiable one is drawn,
// whether a family knows it or not.
#include <algorithm>

#include "tests/generate/families.h"
#include "tests/ops/case_file.h"

namespace ridge {
namespace {

constexpr int64_t kMostElements = 256;  // of one input

bool IsSmallFloat(const TensorType& type) {
  return type == OpCall::Absent() || (IsFloat(type.dtype) && type.elements() <= kMostElements);
}

// Small cases of floats whose gradient central differences can tell.
bool CanDraw(const OpCase& op_case) {
  const auto out_dtype = op_case.attrs.find("out_dtype");
  return op_case.kind == OpCase::Kind::kCase && op_case.check_gradient &&
         out_dtype == op_case.attrs.end() &&
         std::all_of(op_case.inputs.begin(), op_case.inputs.end(), IsSmallFloat);
}

struct OpCases {
  const OpDef* op;
  std::vector<OpCase> cases;
};

const std::vector<OpCases>& AllCases() {
  static const std::vector<OpCases> all = [] {
    std::vector<OpCases> found;
    for (const std::string& path : AllCaseFiles()) {
      Result<CaseFile> file = ReadCaseFile(path);
      if (!file.ok()) continue;
      const OpDef* op = FindOp(file->op);
      if (op == nullptr || op->gradient == nullptr) continue;
      OpCases one{op, {}};
      std::copy_if(file->cases.begin(), file->cases.end(), std::back_inserter(one.cases), CanDraw);
      if (!one.cases.empty()) found.push_back(std::move(one));
    }
    return found;
  }();
  return all;
}

// Some outputs are kept for the gradient of another, and have none themselves.
bool EntersLoss(const OpCase& op_case, size_t output) {
  const std::vector<int64_t>& some = op_case.loss_outputs;
  return some.empty() ||
         std::find(some.begin(), some.end(), static_cast<int64_t>(output)) != some.end();
}

// A value of these dims: one that is there under other dims, or a parameter.
Value Operand(Sketch& s, const Dims& dims) {
  const Value any = s.Any();
  if (s.elements(any) == ElementCount(dims)) return s.Reshape(any, dims);
  return s.Parameter(dims);
}

}  // namespace

void DrawCase(Sketch& s) {
  if (AllCases().empty()) return;
  const OpCases& drawn = s.dice.OneOf(AllCases());
  const OpCase& op_case = s.dice.OneOf(drawn.cases);
  std::vector<Value> inputs;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    if (op_case.inputs[i] == OpCall::Absent()) {
      inputs.push_back(Sketch::Absent());
      continue;
    }
    const auto range = op_case.ranges.find(i);
    const DrawRange wanted = range == op_case.ranges.end() ? DrawRange{-1, 1} : range->second;
    inputs.push_back(s.Within(Operand(s, op_case.inputs[i].dims), wanted.low, wanted.high));
  }
  const std::vector<Value> outputs =
      s.Outputs(drawn.op->name.c_str(), std::move(inputs), op_case.attrs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (EntersLoss(op_case, i)) s.Keep(outputs[i]);
  }
}

}  // namespace ridge
