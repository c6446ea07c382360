// Case files: tests/ops/<op>.case lists calls of one operator; every check of operators reads them.
//
//   # why: comment
//   case f32[2,3], f32[3] axis=1               input types, attributes; values are drawn
//   case f64[4,5], _ range=0.5..2 nograd=1     `_` is an absent input; options, see below
//   error f32[2,3] axis=2                      must be refused with the indented text
//     softmax 'y': axis is 2 but ...
//   value f32[2]=1,2 i64[]=3                   given values; one indented line an output
//     0.25,0.75                                or with its type: f32[2]=0.25,0.75
//
// Attributes are written as in a text graph: 3, 1.5, -inf, "text", [1,2], [0.5,1].
// Options: range=LO..HI (all inputs), rangeK=LO..HI (input K), nograd=1 (no gradient check: say why
// in a comment), loss=[0,2] (only these outputs enter the loss of the gradient check).
// Floats are drawn from [LO, HI), by default [-1, 1); integers from LO to HI inclusive, by default
// 0 to 9; bools are 0 or 1.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

struct DrawRange {
  double low, high;
};

// The values of one array; its type may be left out for outputs.
struct ExpectedOutput {
  bool has_type = false;
  TensorType type;
  std::vector<double> values;
};

struct OpCase {
  enum class Kind { kCase, kError, kValue };
  Kind kind = Kind::kCase;
  int line = 0;
  std::string text;                         // the line, for messages
  std::vector<TensorType> inputs;           // OpCall::Absent() for `_`
  std::vector<std::vector<double>> values;  // kValue: as many as inputs
  AttrMap attrs;
  std::map<size_t, DrawRange> ranges;    // by input; those without have the default
  bool check_gradient = true;            // nograd=1 clears it
  std::vector<int64_t> loss_outputs;     // empty: all float outputs
  std::string expected_error;            // kError
  std::vector<ExpectedOutput> expected;  // kValue
};

struct CaseFile {
  std::string op;  // the file's name without .case
  std::string path;
  std::vector<OpCase> cases;
};

// Fails with "path:line: ..." on a line that is none of the above.
Result<CaseFile> ParseCaseFile(const std::string& text, const std::string& path);
Result<CaseFile> ReadCaseFile(const std::string& path);

// All tests/ops/*.case below $RIDGE_SOURCE_DIR (default: the working folder), by name.
std::vector<std::string> AllCaseFiles();

// Input i of a drawn case, rounded to `dtype`; a function of the case's text and i alone.
// An absent input is an empty Tensor.
Tensor DrawInput(const OpCase& op_case, size_t i, DType dtype);
// Input i as the case says: drawn, or for kValue given.
Tensor CaseInput(const OpCase& op_case, size_t i);

// The call of a case on its declared types, outputs inferred; where is "softmax 'y'".
Result<OpCall> InferCase(const OpDef& op, const OpCase& op_case);

}  // namespace ridge
