#include "tests/fuzz/onnx_mutator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

constexpr int kMostNodes = 64;  // a model that only grows gets slow, and finds nothing

const char* AnyText(int pick) {
  static constexpr const char* kTexts[] = {
      "",          "linear",   "nearest", "cubic",      "reflect",  "edge",       "constant",
      "wrap",      "add",      "mul",     "max",        "min",      "none",       "mean",
      "sum",       "bilinear", "tanh",    "SAME_UPPER", "VALID",    "SAME_LOWER", "CRD",
      "ij,jk->ik", "ii->i",    "...a->a", "a,b->",      "i...,j->j"};
  return kTexts[static_cast<size_t>(pick) % std::size(kTexts)];
}

// A small tensor of integers or floats: axes, shapes, pads and scales are such.
void FillTensor(int data_type, const std::vector<int64_t>& numbers, bool scalar,
                onnx::TensorProto& tensor) {
  tensor.set_data_type(data_type);
  tensor.clear_dims();
  if (!scalar) tensor.add_dims(static_cast<int64_t>(numbers.size()));
  for (const int64_t number : numbers) {
    if (data_type == onnx::TensorProto::INT64) {
      tensor.add_int64_data(number);
    } else {
      tensor.add_float_data(static_cast<float>(number));
    }
  }
}

}  // namespace

int OnnxMutator::Below(int count) {
  return count <= 0 ? 0 : static_cast<int>(random_() % static_cast<uint32_t>(count));
}

int64_t OnnxMutator::Integer() {
  static constexpr int64_t kEdges[] = {std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int32_t>::min(),
                                       std::numeric_limits<int32_t>::max(),
                                       int64_t{1} << 62,
                                       int64_t{1} << 40,
                                       -(int64_t{1} << 33),
                                       1000,
                                       100'000};
  if (OneIn(4)) return kEdges[Below(static_cast<int>(std::size(kEdges)))];
  return Below(10) - 3;
}

float OnnxMutator::Number() {
  static constexpr float kEdges[] = {std::numeric_limits<float>::infinity(),
                                     -std::numeric_limits<float>::infinity(),
                                     std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::max(),
                                     std::numeric_limits<float>::denorm_min(),
                                     -0.0f,
                                     0.5f,
                                     1e-3f};
  if (OneIn(2)) return kEdges[Below(static_cast<int>(std::size(kEdges)))];
  return static_cast<float>(Integer());
}

void OnnxMutator::Mutate(onnx::ModelProto& model) {
  for (int i = 1 + Below(4); i > 0; --i) ChangeOne(model);
}

void OnnxMutator::ChangeOne(onnx::ModelProto& model) {
  onnx::GraphProto& graph = AnyGraph(model);
  if (graph.node().empty() || OneIn(4)) {
    switch (Below(4)) {
      case 0:
        return ChangeOpset(model);
      case 1:
        return MakeKnown(graph);
      default:
        return ChangeType(graph);
    }
  }
  if (!graph.initializer().empty() && OneIn(5))
    return ChangeTensor(*graph.mutable_initializer(Below(graph.initializer_size())));
  onnx::NodeProto& node = *graph.mutable_node(Below(graph.node_size()));
  switch (Below(16)) {
    case 0:
    case 1:
      return ChangeOperator(node);
    case 2:
    case 3:
    case 4:
      return ChangeInputs(graph, node);
    case 5:
      return ChangeOutputs(graph, node);
    case 6:
      return CopyNode(graph);
    case 7:
      return MoveIntoBranches(graph);
    case 8:
      return MoveIntoLoop(graph);
    case 9:
      return MoveIntoFunction(model);
    case 10:
      return graph.mutable_node()->DeleteSubrange(Below(graph.node_size()), 1);
    default:
      return ChangeAttributes(node);
  }
}

onnx::GraphProto& OnnxMutator::AnyGraph(onnx::ModelProto& model) {
  onnx::GraphProto* graph = model.mutable_graph();
  while (!graph->node().empty()) {
    onnx::NodeProto& node = *graph->mutable_node(Below(graph->node_size()));
    if (node.attribute().empty() || OneIn(3)) break;
    onnx::AttributeProto& attribute = *node.mutable_attribute(Below(node.attribute_size()));
    if (!attribute.has_g()) break;
    graph = attribute.mutable_g();
  }
  return *graph;
}

std::string OnnxMutator::AnyName(const onnx::GraphProto& graph) {
  switch (Below(3)) {
    case 0:
      if (!graph.input().empty()) return graph.input(Below(graph.input_size())).name();
      break;
    case 1:
      if (!graph.initializer().empty())
        return graph.initializer(Below(graph.initializer_size())).name();
      break;
    default:
      break;
  }
  if (graph.node().empty()) return "x";
  const onnx::NodeProto& node = graph.node(Below(graph.node_size()));
  return node.output().empty() ? "" : node.output(Below(node.output_size()));
}

void OnnxMutator::ChangeOpset(onnx::ModelProto& model) {
  if (model.opset_import().empty()) model.add_opset_import();
  model.mutable_opset_import(Below(model.opset_import_size()))->set_version(6 + Below(23));
}

void OnnxMutator::ChangeType(onnx::GraphProto& graph) {
  if (graph.input().empty()) return;
  onnx::ValueInfoProto& input = *graph.mutable_input(Below(graph.input_size()));
  onnx::TypeProto::Tensor& type = *input.mutable_type()->mutable_tensor_type();
  if (OneIn(4)) return type.set_elem_type(1 + Below(28));
  ChangeShape(*type.mutable_shape());
}

void OnnxMutator::ChangeShape(onnx::TensorShapeProto& shape) {
  if (shape.dim().empty() || OneIn(4)) {
    shape.add_dim()->set_dim_value(Below(4));
  } else if (OneIn(4)) {
    shape.mutable_dim()->RemoveLast();
  } else if (OneIn(8)) {
    shape.mutable_dim(Below(shape.dim_size()))->set_dim_value(Integer());
  } else {
    shape.mutable_dim(Below(shape.dim_size()))->set_dim_value(Below(7));
  }
}

void OnnxMutator::ChangeTensor(onnx::TensorProto& proto) {
  if (OneIn(8)) return proto.add_dims(Integer());
  if (OneIn(8) && !proto.dims().empty()) return proto.set_dims(Below(proto.dims_size()), Integer());
  const Result<Tensor> read = CopyTensor(proto, "");
  if (!read.ok() || OneIn(4)) {
    const std::string name = proto.name();
    proto.Clear();
    proto.set_name(name);
    std::vector<int64_t> numbers(static_cast<size_t>(Below(6)));
    for (int64_t& number : numbers) number = Integer();
    const bool scalar = OneIn(4);
    if (scalar) numbers.assign(1, Integer());
    return FillTensor(OneIn(2) ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT, numbers,
                      scalar, proto);
  }
  if (read->elements() == 0) return;
  Tensor tensor(read->type());
  std::copy_n(static_cast<const char*>(read->data()), read->bytes(),
              static_cast<char*>(tensor.mutable_data()));
  const int at = Below(static_cast<int>(std::min<int64_t>(tensor.elements(), 1 << 20)));
  const bool is_float = IsFloat(tensor.type().dtype);
  StoreFromDouble(tensor.type().dtype, tensor.mutable_data(), at,
                  is_float ? Number() : static_cast<double>(Integer()));
  const std::string name = proto.name();
  proto.Clear();
  StoreTensor(tensor, name, proto);
}

// An input becomes an initializer: what shapes, axes and trip counts must be.
void OnnxMutator::MakeKnown(onnx::GraphProto& graph) {
  if (graph.input().empty() || graph.initializer_size() >= kMostNodes) return;
  const onnx::ValueInfoProto& input = graph.input(Below(graph.input_size()));
  for (const onnx::TensorProto& other : graph.initializer()) {
    if (other.name() == input.name()) return;
  }
  onnx::TensorProto tensor;
  tensor.set_name(input.name());
  const auto& type = input.type().tensor_type();
  std::vector<int64_t> numbers(static_cast<size_t>(
      type.shape().dim_size() == 1 ? std::clamp<int64_t>(type.shape().dim(0).dim_value(), 0, 16)
                                   : 1));
  for (int64_t& number : numbers) number = Integer();
  FillTensor(type.elem_type() == onnx::TensorProto::FLOAT ? onnx::TensorProto::FLOAT
                                                          : onnx::TensorProto::INT64,
             numbers, type.shape().dim().empty(), tensor);
  *graph.add_initializer() = tensor;
}

void OnnxMutator::ChangeOperator(onnx::NodeProto& node) {
  static const auto converters = AllOnnxConverters();
  const OnnxConverter& other = *converters[random_() % converters.size()];
  node.set_op_type(other.op_type);
  node.set_domain(other.domain);
}

void OnnxMutator::ChangeInputs(const onnx::GraphProto& graph, onnx::NodeProto& node) {
  if (node.input().empty() || OneIn(4)) return node.add_input(AnyName(graph));
  const int at = Below(node.input_size());
  if (OneIn(4)) return node.mutable_input()->RemoveLast();
  node.set_input(at, OneIn(4) ? "" : AnyName(graph));
}

void OnnxMutator::ChangeOutputs(onnx::GraphProto& graph, onnx::NodeProto& node) {
  if (OneIn(3) && !node.output().empty()) return node.mutable_output()->RemoveLast();
  const std::string name = "o" + std::to_string(random_());
  node.add_output(name);
  if (OneIn(2)) graph.add_output()->set_name(name);
}

void OnnxMutator::ChangeAttributes(onnx::NodeProto& node) {
  if (!node.attribute().empty() && OneIn(8)) return node.mutable_attribute()->RemoveLast();
  if (!node.attribute().empty() && !OneIn(6))
    return ChangeAttribute(*node.mutable_attribute(Below(node.attribute_size())));
  static constexpr const char* kNames[] = {"axis",    "axes",         "keepdims",     "pads",
                                           "strides", "dilations",    "kernel_shape", "group",
                                           "alpha",   "epsilon",      "mode",         "auto_pad",
                                           "perm",    "output_shape", "to",           "k"};
  onnx::AttributeProto& added = *node.add_attribute();
  added.set_name(kNames[Below(static_cast<int>(std::size(kNames)))]);
  added.set_type(OneIn(2) ? onnx::AttributeProto::INT : onnx::AttributeProto::INTS);
  ChangeAttribute(added);
}

void OnnxMutator::ChangeAttribute(onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return attribute.set_i(Integer());
    case onnx::AttributeProto::FLOAT:
      return attribute.set_f(Number());
    case onnx::AttributeProto::STRING:
      return attribute.set_s(AnyText(Below(64)));
    case onnx::AttributeProto::FLOATS:
      if (attribute.floats().empty() || OneIn(4)) return attribute.add_floats(Number());
      return attribute.set_floats(Below(attribute.floats_size()), Number());
    case onnx::AttributeProto::INTS:
      if (attribute.ints().empty() || OneIn(4)) return attribute.add_ints(Integer());
      if (OneIn(4)) return attribute.mutable_ints()->RemoveLast();
      return attribute.set_ints(Below(attribute.ints_size()), Integer());
    case onnx::AttributeProto::TENSOR:
      return ChangeTensor(*attribute.mutable_t());
    default:
      return attribute.set_ref_attr_name("axis");
  }
}

void OnnxMutator::CopyNode(onnx::GraphProto& graph) {
  if (graph.node_size() >= kMostNodes) return;
  onnx::NodeProto copy = graph.node(Below(graph.node_size()));
  for (std::string& output : *copy.mutable_output()) {
    output = "c" + std::to_string(random_());
    graph.add_output()->set_name(output);
  }
  *graph.add_node() = copy;
  ChangeInputs(graph, *graph.mutable_node(graph.node_size() - 1));
}

void OnnxMutator::Splice(const onnx::ModelProto& other, onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  if (other.graph().node().empty() || graph.node_size() >= kMostNodes) return;
  onnx::NodeProto node = other.graph().node(Below(other.graph().node_size()));
  for (std::string& input : *node.mutable_input()) {
    const auto& known = other.graph().initializer();
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& tensor) { return tensor.name() == input; });
    input = AnyName(graph);
    if (found == known.end()) continue;
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor = *found;
    input = "i" + std::to_string(random_());
    tensor.set_name(input);
  }
  for (std::string& output : *node.mutable_output()) {
    output = "s" + std::to_string(random_());
    graph.add_output()->set_name(output);
  }
  *graph.add_node() = node;
}

// A node becomes an If whose branches hold it.
void OnnxMutator::MoveIntoBranches(onnx::GraphProto& graph) {
  onnx::NodeProto& node = *graph.mutable_node(Below(graph.node_size()));
  onnx::GraphProto body;
  *body.add_node() = node;
  for (const std::string& output : node.output()) body.add_output()->set_name(output);
  const std::string condition = AnyName(graph);
  node.clear_input();
  node.clear_attribute();
  node.clear_domain();
  node.set_op_type("If");
  node.add_input(condition);
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& branch = *node.add_attribute();
    branch.set_name(name);
    branch.set_type(onnx::AttributeProto::GRAPH);
    *branch.mutable_g() = body;
  }
}

// A node becomes a Loop that scans its results.
void OnnxMutator::MoveIntoLoop(onnx::GraphProto& graph) {
  onnx::NodeProto& node = *graph.mutable_node(Below(graph.node_size()));
  onnx::GraphProto body;
  *body.add_node() = node;
  for (const char* name : {"trip", "go"}) body.add_input()->set_name(name);
  body.add_output()->set_name("go");
  for (const std::string& output : node.output()) body.add_output()->set_name(output);
  const std::string trips = AnyName(graph);
  node.clear_input();
  node.clear_attribute();
  node.clear_domain();
  node.set_op_type("Loop");
  node.add_input(trips);
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = body;
}

// A node becomes a call of a function that holds it.
void OnnxMutator::MoveIntoFunction(onnx::ModelProto& model) {
  if (model.functions_size() >= 8) return;
  onnx::GraphProto& graph = *model.mutable_graph();
  if (graph.node().empty()) return;
  onnx::NodeProto& node = *graph.mutable_node(Below(graph.node_size()));
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name("f" + std::to_string(random_()));
  function.set_domain("local");
  *function.mutable_input() = node.input();
  *function.mutable_output() = node.output();
  *function.add_node() = node;
  node.set_op_type(function.name());
  node.set_domain("local");
}

}  // namespace ridge
