#include "ridge/onnx/file/initializers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/glob.h"
#include "ridge/core/tensor_file.h"

namespace ridge {
namespace {

constexpr char kSignatureKey[] = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr char kKindKey[] = "pkg.torch.export.graph_signature.InputSpec.kind";

// The inputs that hold weights and biases.
struct WeightInputs {
  const char* op_type;
  std::array<int, 3> inputs;  // -1: none
};
constexpr WeightInputs kWeightInputs[] = {
    {"Conv", {1, 2, -1}},
    {"ConvTranspose", {1, 2, -1}},
    {"Gemm", {0, 1, 2}},
    {"MatMul", {0, 1, -1}},
    {"PRelu", {1, -1, -1}},
    {"BatchNormalization", {1, 2, -1}},
    {"LayerNormalization", {1, 2, -1}},
    {"InstanceNormalization", {1, 2, -1}},
    {"GroupNormalization", {1, 2, -1}},
    {"RMSNormalization", {1, -1, -1}},
    {"SimplifiedLayerNormalization", {1, -1, -1}},
    {"RNN", {1, 2, 3}},
    {"GRU", {1, 2, 3}},
    {"LSTM", {1, 2, 3}},
};

void NoteWeights(const onnx::NodeProto& node, std::set<std::string>& weights) {
  for (const WeightInputs& row : kWeightInputs) {
    if (node.op_type() != row.op_type) continue;
    for (int i : row.inputs) {
      if (i >= 0 && i < node.input_size()) weights.insert(node.input(i));
    }
  }
}

std::string ModuleOf(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// "p_l_weight: PARAMETER target='l.weight'" -> "l.weight".
std::string TargetOf(const std::string& line) {
  const size_t from = line.find("target='");
  if (from == std::string::npos) return "";
  const size_t start = from + 8;
  return line.substr(start, line.find('\'', start) - start);
}

bool MadeByTool(const std::string& name) {
  if (name.empty() || name[0] == '/') return true;
  if (std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return true;
  for (const char* start : {"onnx::", "val_", "const", "Const", "scalar_tensor", "_val_"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

// A number that stands in TensorFlow's code, "norm/add/y:0"; variables are "norm/ReadVariableOp:0".
bool IsTensorFlowOperand(const std::string& name, const Tensor& tensor) {
  return tensor.type().rank() == 0 && name.ends_with(":0") &&
         name.find("ReadVariableOp") == std::string::npos;
}

// What is added to scores before softmax: 0 where something may be looked at, else a large negative
// number (PyTorch's lowest float, -inf, -1e4; Swin's -100).
bool IsMask(const Tensor& tensor) {
  constexpr int64_t kPiece = 1024;
  std::array<double, kPiece> numbers;
  for (int64_t at = 0; at < tensor.elements(); at += kPiece) {
    const int64_t end = std::min(at + kPiece, tensor.elements());
    // A file that can't be read is an error when its numbers are wanted.
    if (!ReadConverted(tensor, DType::kF64, at, end, numbers.data()).ok()) return false;
    const auto masks = [](double value) { return value == 0 || value <= -100; };
    if (!std::all_of(numbers.begin(), numbers.begin() + (end - at), masks)) return false;
  }
  return true;
}

bool Any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(name, pattern); });
}

}  // namespace

InitializerRoles::InitializerRoles(const OnnxModel& model, const OnnxImportOptions& options)
    : options_(options) {
  const onnx::GraphProto& graph = model.proto().graph();
  for (const onnx::NodeProto& node : graph.node()) NoteWeights(node, weights_);
  for (const onnx::StringStringEntryProto& entry : graph.metadata_props()) {
    if (entry.key() != kSignatureKey) continue;
    has_signature_ = true;
    std::istringstream lines(entry.value());
    for (std::string line; std::getline(lines, line);) {
      const std::string target = TargetOf(line);
      if (target.empty()) continue;
      const bool parameter = line.find(": PARAMETER ") != std::string::npos;
      (parameter ? parameters_ : fixed_).insert(target);
    }
  }
  for (const onnx::ValueInfoProto& info : graph.value_info()) {
    for (const onnx::StringStringEntryProto& entry : info.metadata_props()) {
      if (entry.key() != kKindKey) continue;
      has_signature_ = true;
      (entry.value() == "PARAMETER" ? parameters_ : fixed_).insert(info.name());
    }
  }
  for (const std::string& name : parameters_) modules_.insert(ModuleOf(name));
  for (const auto& [name, tensor] : model.initializers()) {
    if (IsFloat(tensor.type().dtype) && tensor.elements() > 1) weights_are_constants_ = false;
  }
}

bool InitializerRoles::IsInitializer(const std::string& constant, const Tensor& tensor) const {
  if (!IsFloat(tensor.type().dtype)) return false;
  if (Any(options_.trainable, constant)) return true;
  return weights_are_constants_ && (tensor.elements() > 1 || weights_.contains(constant));
}

bool InitializerRoles::Trained(const std::string& name, const Tensor& tensor) const {
  return Learns(name, tensor) || (options_.all_parameters && !Any(options_.freeze, name));
}

bool InitializerRoles::Learns(const std::string& name, const Tensor& tensor) const {
  if (Any(options_.trainable, name)) return true;
  return !Any(options_.freeze, name) && TrainedByDefault(name, tensor);
}

bool InitializerRoles::TrainedByDefault(const std::string& name, const Tensor& tensor) const {
  if (parameters_.contains(name)) return true;
  if (fixed_.contains(name)) return false;
  if (weights_.contains(name)) return true;
  if (!has_signature_ && IsTensorFlowOperand(name, tensor)) return false;
  if (!has_signature_) return !MadeByTool(name) || (tensor.elements() != 1 && !IsMask(tensor));
  const std::string module = ModuleOf(name);
  return !module.empty() && modules_.contains(module);
}

}  // namespace ridge
