// Prints values in order of creation, each as one statement, so that reading the text back gives
// every value the same id.  See text_parse.cc for the way back.
#include "ridge/graph/text.h"

#include <fmt/format.h>

#include "ridge/graph/text_attr.h"
#include "ridge/graph/text_lexer.h"

namespace ridge {
namespace {

const char* RoleName(ValueRole role) {
  static constexpr const char* kNames[] = {"none", "gradient", "optimizer", "statistic",
                                           "recomputed"};
  return kNames[static_cast<size_t>(role)];
}

// "784", "batch=128", or "batch" while it is not bound.
std::string PrintDim(const ValueInfo& input, size_t d) {
  const std::string extent = fmt::format("{}", input.type.dims[d]);
  if (d >= input.dim_names.size() || input.dim_names[d].empty()) return extent;
  const std::string& name = input.dim_names[d];
  if (name.ends_with('?')) return PrintName(std::string_view(name).substr(0, name.size() - 1));
  return fmt::format("{}={}", PrintName(name), extent);
}

std::string PrintInput(const ValueInfo& input) {
  std::string out =
      fmt::format("{} = input {}[", PrintName(input.name), DTypeName(input.type.dtype));
  for (size_t d = 0; d < input.type.dims.size(); ++d) {
    if (d > 0) out += ",";
    out += PrintDim(input, d);
  }
  return out + "]";
}

std::string PrintInit(const Init& init) {
  switch (init.kind) {
    case Init::Kind::kZeros:
      return "zeros";
    case Init::Kind::kConstant:
      return fmt::format("constant({})", PrintNumber(init.scale));
    case Init::Kind::kUniform:
      return fmt::format("uniform({})", PrintNumber(init.scale));
    case Init::Kind::kNormal:
      return fmt::format("normal({})", PrintNumber(init.scale));
    case Init::Kind::kTensor:
      return PrintTensorValues(init.tensor, "values(", ")");
    case Init::Kind::kNf4Codes:
    case Init::Kind::kNf4Scales:
      return fmt::format("{}({} {} {})",
                         init.kind == Init::Kind::kNf4Codes ? "nf4_codes" : "nf4_scales",
                         PrintName(init.quantized->name), TypeToString(init.quantized->type),
                         PrintInit(init.quantized->init));
  }
  return "";
}

std::string PrintVariable(const ValueInfo& variable) {
  const bool parameter = variable.kind == ValueKind::kParameter;
  std::string out =
      fmt::format("{} = {} {} init={}", PrintName(variable.name), parameter ? "parameter" : "state",
                  TypeToString(variable.type), PrintInit(variable.init));
  if (parameter && !variable.trainable) out += " frozen=1";
  if (variable.role != ValueRole::kNone) out += fmt::format(" role={}", RoleName(variable.role));
  return out;
}

bool IsRequired(const OpDef& op, const std::string& attr) {
  for (const std::string& name : op.required_attrs) {
    if (name == attr) return true;
  }
  return false;
}

// ", name=value" for each attribute that reading would not fill in by itself.
std::string PrintAttrs(const Node& node, bool first) {
  std::string out;
  for (const auto& [name, value] : node.attrs) {
    const auto declared = node.op->attr_defaults.find(name);
    const bool is_default =
        declared != node.op->attr_defaults.end() && SameAttr(declared->second, value);
    if (is_default && !IsRequired(*node.op, name)) continue;
    out += fmt::format("{}{}={}", first ? "" : ", ", PrintName(name), PrintAttr(value));
    first = false;
  }
  return out;
}

// " role=gradient", or one role for each output; nothing where no output has one.
std::string PrintRoles(const Graph& graph, const Node& node) {
  std::string out = " role=";
  bool any = false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueRole role = graph.value(node.outputs[i]).role;
    any = any || role != ValueRole::kNone;
    out += fmt::format("{}{}", i > 0 ? "," : "", RoleName(role));
  }
  return any ? out : "";
}

std::string PrintNode(const Graph& graph, const Node& node) {
  std::string out;
  for (ValueId id : node.outputs) {
    out += out.empty() ? "" : ", ";
    out += PrintName(graph.value(id).name);
  }
  out += fmt::format(" = {}(", node.op->name);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i > 0) out += ", ";
    out += node.inputs[i] == kNoValue ? "_" : PrintName(graph.value(node.inputs[i]).name);
  }
  return out + PrintAttrs(node, node.inputs.empty()) + ")" + PrintRoles(graph, node);
}

std::string PrintValue(const Graph& graph, const ValueInfo& info) {
  switch (info.kind) {
    case ValueKind::kInput:
      return PrintInput(info);
    case ValueKind::kParameter:
    case ValueKind::kState:
      return PrintVariable(info);
    case ValueKind::kConstant:
      return fmt::format("{} = constant {} {}", PrintName(info.name), TypeToString(info.type),
                         info.type.rank() == 0 ? PrintTensorValues(info.constant, "", "")
                                               : PrintTensorValues(info.constant, "[", "]"));
    case ValueKind::kResult:
      return PrintNode(graph, graph.node(info.producer));
  }
  return "";
}

}  // namespace

Status LoadInitialTensors(Graph& graph) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
    Init& init = graph.mutable_value(id).init;
    if (init.quantized != nullptr && !init.quantized->init.tensor.in_memory()) {
      ValueInfo loaded = *init.quantized;
      RIDGE_ASSIGN_OR_RETURN(loaded.init.tensor, loaded.init.tensor.Load());
      init.quantized = std::make_shared<const ValueInfo>(std::move(loaded));
    }
    if (init.tensor.in_memory()) continue;
    RIDGE_ASSIGN_OR_RETURN(init.tensor, init.tensor.Load());
  }
  return Status();
}

std::string PrintGraph(const Graph& graph) {
  std::string out = fmt::format("graph {}\n", PrintName(graph.name));
  for (const ValueInfo& info : graph.values()) {
    const bool told = info.kind == ValueKind::kResult && info.output_index > 0;
    if (!told) out += fmt::format("  {}\n", PrintValue(graph, info));
  }
  for (const GraphOutput& output : graph.outputs()) {
    const std::string value = PrintName(graph.value(output.value).name);
    const std::string name = PrintName(output.name);
    out += name == value ? fmt::format("  output {}\n", name)
                         : fmt::format("  output {} = {}\n", name, value);
  }
  for (const GraphUpdate& update : graph.updates()) {
    out += fmt::format("  update {} = {}\n", PrintName(graph.value(update.variable).name),
                       PrintName(graph.value(update.value).name));
  }
  return out;
}

}  // namespace ridge
