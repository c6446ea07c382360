// Names first: inputs and variables keep theirs, then the outputs claim theirs, and what is in
// between gives way.  Then one pass over the nodes.
#include "ridge/onnx/export/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/export/exporter.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

// IR versions that came with each opset from 9 on.
int64_t IrVersionOf(int64_t opset) {
  constexpr std::pair<int64_t, int64_t> kSince[] = {{25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
                                                    {15, 8},  {12, 7},  {11, 6},  {10, 5}};
  for (const auto& [first, ir] : kSince) {
    if (opset >= first) return ir;
  }
  return 4;
}

// Names every node that ONNX cannot say, with the reason.
Status CheckExported(const Graph& graph) {
  std::vector<std::string> missing;
  for (const Node& node : graph.nodes()) {
    if (FindOnnxExporter(*node.op) == nullptr)
      missing.push_back(fmt::format("{} {}", graph.Where(node), WhyNotExported(*node.op)));
  }
  if (missing.empty()) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("export: ONNX has no form of {} node{}:\n  {}", missing.size(),
                            missing.size() == 1 ? "" : "s", fmt::join(missing, "\n  ")));
}

class GraphExporter {
 public:
  GraphExporter(const Graph& graph, const std::map<std::string, Tensor>& values,
                const ExportDims& extents, int64_t opset, OnnxDocument& document)
      : graph_(graph),
        values_(values),
        extents_(extents),
        proto_(*document.proto->mutable_graph()),
        contents_(document.contents),
        writer_(graph, extents, opset, proto_, document.contents) {}

  int64_t needed_opset() const { return writer_.needed_opset(); }
  const std::string& needed_for() const { return writer_.needed_for(); }

  Status Write() {
    RIDGE_RETURN_IF_ERROR(WriteAll());
    RemoveUnread();
    return Status();
  }

 private:
  Status WriteAll() {
    proto_.set_name(graph_.name);
    RIDGE_RETURN_IF_ERROR(NameValues());
    RIDGE_RETURN_IF_ERROR(WriteLeaves());
    for (const Node& node : graph_.nodes()) RIDGE_RETURN_IF_ERROR(WriteNode(node));
    WriteOutputs();
    return Status();
  }
  void RemoveUnread();
  Status NameValues();
  Status ClaimOutput(const GraphOutput& output);
  Status WriteLeaves();
  Status WriteNode(const Node& node);
  void WriteOutputs();
  void WriteInfo(const std::string& name, ValueId id, onnx::ValueInfoProto& info);

  const Graph& graph_;
  const std::map<std::string, Tensor>& values_;
  const ExportDims& extents_;
  onnx::GraphProto& proto_;
  std::map<std::string, Tensor>& contents_;
  OnnxGraphWriter writer_;
  std::vector<std::pair<std::string, ValueId>> copied_;  // outputs that are other names of a value
};

Status GraphExporter::NameValues() {
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    const ValueInfo& info = graph_.values()[i];
    if (info.kind == ValueKind::kResult || info.kind == ValueKind::kConstant) continue;
    writer_.Take(info.name);
    writer_.SetName(static_cast<ValueId>(i), info.name);
  }
  for (const GraphOutput& output : graph_.outputs()) RIDGE_RETURN_IF_ERROR(ClaimOutput(output));
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (writer_.NameOf(id).empty()) writer_.SetName(id, writer_.FreeName(graph_.value(id).name));
  }
  return Status();
}

// A result takes the output's name; a second name of it, or a name of a leaf, is a copy.
Status GraphExporter::ClaimOutput(const GraphOutput& output) {
  if (writer_.NameOf(output.value) == output.name) return Status();
  if (!writer_.Take(output.name)) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("export: output '{}' has the name of another input, variable or "
                              "output; ONNX has one name for one value",
                              output.name));
  }
  const bool result = graph_.value(output.value).kind == ValueKind::kResult;
  if (result && writer_.NameOf(output.value).empty()) {
    writer_.SetName(output.value, output.name);
  } else {
    copied_.emplace_back(output.name, output.value);
  }
  return Status();
}

Status GraphExporter::WriteLeaves() {
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ValueInfo& info = graph_.value(id);
    if (info.kind == ValueKind::kResult) continue;
    if (info.kind == ValueKind::kInput) {
      WriteInfo(info.name, id, *proto_.add_input());
    } else if (info.kind == ValueKind::kConstant) {
      if (writer_.IsRead(id)) writer_.AddInitializer(writer_.NameOf(id), info.constant);
    } else {
      const auto found = values_.find(info.name);
      if (found == values_.end() || found->second.type() != info.type) {
        return Status(ErrorCode::kInvalidData, fmt::format("export: no value of '{}', {}",
                                                           info.name, TypeToString(info.type)));
      }
      writer_.AddInitializer(info.name, found->second);
    }
  }
  return Status();
}

Status GraphExporter::WriteNode(const Node& node) {
  OnnxNodeWriter n(writer_, node);
  const OnnxWriteOp write = FindOnnxExporter(*node.op);
  RIDGE_CHECK(write != nullptr, "looked for before");
  return write(n);
}

void GraphExporter::WriteOutputs() {
  for (const auto& [name, value] : copied_)
    writer_.AddNode(name, "Identity", {writer_.NameOf(value)}, {name}, {});
  for (const GraphOutput& output : graph_.outputs())
    WriteInfo(output.name, output.value, *proto_.add_output());
}

// Nodes whose results an exporter did without, and constants that nothing reads.
void GraphExporter::RemoveUnread() {
  std::set<std::string> read;
  for (const auto& output : proto_.output()) read.insert(output.name());
  auto& nodes = *proto_.mutable_node();
  std::vector<bool> kept(static_cast<size_t>(nodes.size()), false);
  for (int i = nodes.size(); i-- > 0;) {
    const auto& outputs = nodes[i].output();
    const bool needed = std::any_of(outputs.begin(), outputs.end(),
                                    [&](const std::string& name) { return read.contains(name); });
    kept[static_cast<size_t>(i)] = needed;
    if (needed) read.insert(nodes[i].input().begin(), nodes[i].input().end());
  }
  int node = 0;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> needed_nodes;
  for (onnx::NodeProto& proto : nodes) {
    if (kept[static_cast<size_t>(node++)]) needed_nodes.Add()->Swap(&proto);
  }
  nodes.Swap(&needed_nodes);
  google::protobuf::RepeatedPtrField<onnx::TensorProto> tensors;
  for (onnx::TensorProto& tensor : *proto_.mutable_initializer()) {
    const bool needed = values_.contains(tensor.name()) || read.contains(tensor.name());
    if (needed) tensors.Add()->Swap(&tensor);
    if (!needed) contents_.erase(tensor.name());
  }
  proto_.mutable_initializer()->Swap(&tensors);
}

void GraphExporter::WriteInfo(const std::string& name, ValueId id, onnx::ValueInfoProto& info) {
  info.set_name(name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(OnnxFromDType(graph_.type(id).dtype));
  onnx::TensorShapeProto& shape = *type.mutable_shape();  // there even when the rank is 0
  for (const ExportDim& extent : extents_.Dims(id)) {
    onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
    if (extent.fixed()) {
      dim.set_dim_value(extent.here);
    } else if (const OnnxSymbol* symbol = extents_.SymbolOf(extent); symbol != nullptr) {
      dim.set_dim_param(symbol->name);
    }
  }
}

// The names that could not be kept open.
std::string FixedDimsNote(const Graph& graph, const ExportDims& extents) {
  std::set<std::string> fixed;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    for (size_t d = 0; d < info.dim_names.size() && d < info.type.dims.size(); ++d) {
      if (!info.dim_names[d].empty() && extents.Dims(id)[d].fixed()) {
        fixed.insert(fmt::format("'{}' is fixed at {}", info.dim_names[d], info.type.dims[d]));
      }
    }
  }
  if (fixed.empty()) return "";
  return fmt::format("{}: the graph holds only at these extents", fmt::join(fixed, ", "));
}

}  // namespace

OnnxDocument::OnnxDocument() : proto(std::make_unique<onnx::ModelProto>()) {}
OnnxDocument::OnnxDocument(OnnxDocument&&) noexcept = default;
OnnxDocument& OnnxDocument::operator=(OnnxDocument&&) noexcept = default;
OnnxDocument::~OnnxDocument() = default;

namespace {

// The graph in one opset, whether or not it holds it.
struct Attempt {
  OnnxDocument document;
  int64_t needed = 0;
  std::string needed_for;
};

Result<Attempt> TryOpset(const Graph& graph, const std::map<std::string, Tensor>& values,
                         const ExportDims& extents, int64_t opset) {
  Attempt attempt;
  GraphExporter exporter(graph, values, extents, opset, attempt.document);
  RIDGE_RETURN_IF_ERROR(exporter.Write());
  attempt.needed = exporter.needed_opset();
  attempt.needed_for = exporter.needed_for();
  return attempt;
}

// What the graph needs can only grow with the opset it is written in, and is known once the two
// meet.
Result<Attempt> InLowestOpset(const Graph& graph, const std::map<std::string, Tensor>& values,
                              const ExportDims& extents, int64_t opset) {
  std::string needed_for;
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(Attempt attempt, TryOpset(graph, values, extents, opset));
    if (!attempt.needed_for.empty()) needed_for = attempt.needed_for;
    if (attempt.needed <= opset) {
      attempt.needed = opset;
      attempt.needed_for = needed_for;
      return attempt;
    }
    opset = attempt.needed;
  }
}

Result<Attempt> InOpset(const Graph& graph, const std::map<std::string, Tensor>& values,
                        const ExportDims& extents, const OnnxExportOptions& options) {
  const int64_t wanted = options.opset;
  const int64_t least = std::max(kLeastExportOpset, options.least_opset);
  if (wanted == 0) return InLowestOpset(graph, values, extents, least);
  if (wanted >= least && wanted <= kMostExportOpset) {
    RIDGE_ASSIGN_OR_RETURN(Attempt attempt, TryOpset(graph, values, extents, wanted));
    if (attempt.needed <= wanted) {
      attempt.needed = wanted;
      return attempt;
    }
  }
  RIDGE_ASSIGN_OR_RETURN(const Attempt lowest, InLowestOpset(graph, values, extents, least));
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("export: opset {}; {} can be written in {} to {}{}", wanted, graph.name,
                            lowest.needed, kMostExportOpset,
                            lowest.needed == kLeastExportOpset || lowest.needed_for.empty()
                                ? ""
                                : " because of " + lowest.needed_for));
}

}  // namespace

Result<OnnxDocument> ExportOnnx(const Graph& forward, const std::map<std::string, Tensor>& values,
                                const std::vector<Graph>& others,
                                const OnnxExportOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckExported(forward));
  const std::vector<Graph> rebound = others.empty() ? WithOtherDims(forward) : std::vector<Graph>();
  const ExportDims extents(forward, others.empty() ? rebound : others);
  RIDGE_ASSIGN_OR_RETURN(Attempt attempt, InOpset(forward, values, extents, options));
  OnnxDocument document = std::move(attempt.document);
  document.proto->set_ir_version(IrVersionOf(attempt.needed));
  document.proto->set_producer_name("ridge");
  document.proto->set_producer_version(options.producer_version);
  onnx::OperatorSetIdProto& set = *document.proto->add_opset_import();
  set.set_domain("");
  set.set_version(attempt.needed);
  if (std::string note = FixedDimsNote(forward, extents); !note.empty())
    document.notes.push_back(std::move(note));
  return document;
}

}  // namespace ridge
