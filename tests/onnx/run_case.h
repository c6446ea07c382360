// Runs one conformance case: import, evaluation on the operators' references, comparison.
#pragma once
#include <string>

#include "ridge/onnx/import/import.h"
#include "tests/onnx/case.h"

namespace ridge {

enum class Outcome {
  kPassed,
  kFailed,
  kUnsupported,  // import says so, with a reason
  kNotHeld,      // strings, sequences, optionals
  kSkipped,      // of a gradient check: nothing to check, with a reason
};

struct CaseResult {
  Outcome outcome = Outcome::kFailed;
  std::string op;        // OperatorOfCase
  std::string text;      // why, one line
  bool standard = true;  // an operator of ai.onnx
};

CaseResult RunOnnxCase(const OnnxCase& onnx_case);

// Imports with the dimensions of the given inputs.  What must be known before planning is taken
// from the integer inputs when import asks for it, and then from all of them.
Result<OnnxImport> ImportForInputs(const OnnxModel& model, const std::vector<Tensor>& inputs);

// Everything that EvaluateGraph needs besides variables: the inputs by name, zeros for the random
// state.
std::map<std::string, Tensor> GivenInputs(const OnnxModel& model, const Graph& graph,
                                          const std::vector<Tensor>& inputs);

std::string FirstLine(const std::string& text);

}  // namespace ridge
