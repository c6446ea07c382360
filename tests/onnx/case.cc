#include "tests/onnx/case.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/files.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr std::array kGroups = {"node", "simple", "pytorch-converted", "pytorch-operator"};

// light_resnet50.onnx -> real/test_resnet50/data.json.
Status ReadTolerances(const std::string& folder, const std::string& net, OnnxCase& onnx_case) {
  const std::string path = folder + "/real/test_" + net + "/data.json";
  if (!fs::exists(path)) return Status();
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status(ErrorCode::kInvalidData, path + ": is no JSON object");
  onnx_case.rtol = json.value("rtol", onnx_case.rtol);
  onnx_case.atol = json.value("atol", onnx_case.atol);
  return Status();
}

Status ListLight(const std::string& folder, std::vector<OnnxCase>& cases) {
  for (const auto& entry : fs::directory_iterator(folder + "/light")) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string stem = entry.path().stem().string();
    OnnxCase onnx_case;
    onnx_case.name = "light/" + stem;
    onnx_case.model = entry.path().string();
    onnx_case.output = folder + "/light/" + stem + "_output";
    RIDGE_RETURN_IF_ERROR(ReadTolerances(folder, stem.substr(6), onnx_case));
    cases.push_back(onnx_case);
  }
  return Status();
}

// Outputs that were recorded with an error above the tolerance of the runner: exact arithmetic
// misses them.
struct Tolerance {
  const char* name;
  double atol;
};
constexpr std::array kRecordedWithError = {
    Tolerance{"node/test_dft_inverse*", 1e-6},  // 2e-7 where the imaginary part is 0
};

double AtolOf(const OnnxCase& onnx_case) {
  for (const Tolerance& tolerance : kRecordedWithError) {
    if (MatchesGlob(onnx_case.name, tolerance.name)) return tolerance.atol;
  }
  return onnx_case.atol;
}

Result<Tensor> ReadTensor(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) {
    return Status(ErrorCode::kInvalidData, path + ": is no TensorProto");
  }
  return CopyTensor(proto, "");
}

// PREFIX_0.pb, PREFIX_1.pb, ...
Result<std::vector<Tensor>> ReadTensors(const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (int i = 0; fs::exists(fmt::format("{}_{}.pb", prefix, i)); ++i) {
    RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(fmt::format("{}_{}.pb", prefix, i)));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// 0, 1/n, 2/n, ... as ONNX's runner makes them.
Tensor RandomInput(const onnx::ValueInfoProto& input) {
  TensorType type{DType::kF32, {}};
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    type.dims.push_back(dim.has_dim_value() ? dim.dim_value() : 1);
  }
  Tensor tensor(type);
  const auto count = static_cast<double>(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.as_mutable<float>()[i] = static_cast<float>(static_cast<double>(i) / count);
  }
  return tensor;
}

std::vector<Tensor> RandomInputs(const onnx::ModelProto& model) {
  std::set<std::string> initializers;
  for (const auto& tensor : model.graph().initializer()) initializers.insert(tensor.name());
  std::vector<Tensor> inputs;
  for (const auto& input : model.graph().input()) {
    if (initializers.count(input.name()) == 0) inputs.push_back(RandomInput(input));
  }
  return inputs;
}

std::string NotHeldType(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return "sequences";
  if (type.has_optional_type()) return "optionals";
  if (type.has_map_type()) return "maps";
  if (type.tensor_type().elem_type() == onnx::TensorProto::STRING) return "strings";
  return "";
}

std::string NotHeldNode(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  const auto has = [&op](const char* word) { return op.find(word) != std::string::npos; };
  if (has("Sequence") && op != "ReverseSequence") return "sequences";
  if (has("Optional")) return "optionals";
  if (has("String") || has("Regex")) return "strings";
  for (const auto& attr : node.attribute()) {
    if (op == "Cast" && attr.name() == "to" && attr.i() == onnx::TensorProto::STRING) {
      return "strings";
    }
    if (attr.t().data_type() == onnx::TensorProto::STRING) return "strings";
  }
  return "";
}

std::string NotHeldGraph(const onnx::GraphProto& graph) {
  for (const auto* values : {&graph.input(), &graph.output()}) {
    for (const auto& value : *values) {
      if (std::string why = NotHeldType(value.type()); !why.empty()) return why;
    }
  }
  for (const auto& node : graph.node()) {
    if (std::string why = NotHeldNode(node); !why.empty()) return why;
    for (const auto& attr : node.attribute()) {
      if (!attr.has_g()) continue;
      if (std::string why = NotHeldGraph(attr.g()); !why.empty()) return why;
    }
  }
  return "";
}

}  // namespace

Result<std::vector<OnnxCase>> ListOnnxCases(const std::string& folder) {
  std::vector<OnnxCase> cases;
  if (!fs::is_directory(folder + "/node")) {
    return Status(ErrorCode::kInvalidData,
                  folder + ": holds no folder 'node'. hint: scripts/setup.sh --test-tools");
  }
  for (const std::string group : kGroups) {
    for (const auto& entry : fs::directory_iterator(folder + "/" + group)) {
      if (!fs::exists(entry.path() / "model.onnx")) continue;
      OnnxCase onnx_case;
      onnx_case.name = group + "/" + entry.path().filename().string();
      onnx_case.model = (entry.path() / "model.onnx").string();
      onnx_case.data = (entry.path() / "test_data_set_0").string();
      onnx_case.atol = AtolOf(onnx_case);
      cases.push_back(onnx_case);
    }
  }
  RIDGE_RETURN_IF_ERROR(ListLight(folder, cases));
  std::sort(cases.begin(), cases.end(),
            [](const OnnxCase& a, const OnnxCase& b) { return a.name < b.name; });
  return cases;
}

Status ReadOnnxProto(const std::string& path, onnx::ModelProto& model) {
  RIDGE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (model.ParseFromString(bytes)) return Status();
  return Status(ErrorCode::kInvalidData, path + ": is no ModelProto");
}

Result<OnnxCaseTensors> ReadOnnxTensors(const OnnxCase& onnx_case, const onnx::ModelProto& model) {
  OnnxCaseTensors tensors;
  if (onnx_case.data.empty()) {
    tensors.inputs = RandomInputs(model);
  } else {
    RIDGE_ASSIGN_OR_RETURN(tensors.inputs, ReadTensors(onnx_case.data + "/input"));
  }
  RIDGE_ASSIGN_OR_RETURN(
      tensors.outputs,
      ReadTensors(onnx_case.data.empty() ? onnx_case.output : onnx_case.data + "/output"));
  return tensors;
}

std::string NotHeld(const onnx::ModelProto& model) {
  if (std::string why = NotHeldGraph(model.graph()); !why.empty()) return why;
  for (const auto& function : model.functions()) {
    for (const auto& node : function.node()) {
      if (std::string why = NotHeldNode(node); !why.empty()) return why;
    }
  }
  return "";
}

std::string OperatorOfCase(const OnnxCase& onnx_case, const onnx::ModelProto& model) {
  if (onnx_case.name.rfind("node/", 0) != 0) {
    return "(models) " + onnx_case.name.substr(0, onnx_case.name.find('/'));
  }
  const size_t expanded = onnx_case.model.find("_expanded");
  if (expanded != std::string::npos) {
    onnx::ModelProto base;
    const std::string path = onnx_case.model.substr(0, expanded) + "/model.onnx";
    OnnxCase base_case;
    base_case.name = "node/";
    if (ReadOnnxProto(path, base).ok()) return OperatorOfCase(base_case, base);
  }
  if (model.graph().node_size() == 0) return "(none)";
  const onnx::NodeProto& node = model.graph().node(0);
  return node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
}

std::string ReadOperatorOfCase(const OnnxCase& onnx_case) {
  onnx::ModelProto model;
  return ReadOnnxProto(onnx_case.model, model).ok() ? OperatorOfCase(onnx_case, model) : "";
}

bool HasRandomOutputs(const std::string& case_name) {
  if (MatchesGlob(case_name, "node/test_training_dropout*")) {
    return !MatchesGlob(case_name, "*zero_ratio*");
  }
  return MatchesGlob(case_name, "node/test_bernoulli*");
}

bool MatchesGlob(const std::string& text, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace ridge
