// ONNX's conformance cases as they lie in the wheel: a model, tensors that go in, tensors that must
// come out.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/tensor.h"

namespace onnx {
class GraphProto;
class ModelProto;
}  // namespace onnx

namespace ridge {

struct OnnxCase {
  std::string name;    // "node/test_add"
  std::string model;   // path of the file
  std::string data;    // folder with input_0.pb, output_0.pb; empty: random inputs
  std::string output;  // path before "_0.pb" of the outputs of random inputs
  double rtol = 1e-3;  // the defaults of ONNX's own runner
  double atol = 1e-7;
};

// All cases below `folder` (onnx/backend/test/data of the wheel), in order of name.
// The nets in light/ have no inputs: as ONNX's own runner does, they get 0, 1/n, 2/n, ...
Result<std::vector<OnnxCase>> ListOnnxCases(const std::string& folder);

Status ReadOnnxProto(const std::string& path, onnx::ModelProto& model);

struct OnnxCaseTensors {
  std::vector<Tensor> inputs;  // of the inputs without initializer, in order
  std::vector<Tensor> outputs;
};
Result<OnnxCaseTensors> ReadOnnxTensors(const OnnxCase& onnx_case, const onnx::ModelProto& model);

// Why a case is outside of what we hold at all: "strings", "sequences", "optionals"; "" when it is
// not.
std::string NotHeld(const onnx::ModelProto& model);

// What a case is counted under: the operator of its first node; for the expansion of a function
// operator ("_expanded" in the name) the operator that was expanded, given its own case.
std::string OperatorOfCase(const OnnxCase& onnx_case, const onnx::ModelProto& model);

std::string ReadOperatorOfCase(const OnnxCase& onnx_case);

// Cases whose outputs are drawn at random: only their types can be compared.
bool HasRandomOutputs(const std::string& case_name);

bool MatchesGlob(const std::string& text, const std::string& pattern);

}  // namespace ridge
