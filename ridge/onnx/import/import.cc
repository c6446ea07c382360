// The nodes of a file are in topological order (ONNX demands it), so one walk converts them.
// Initializers are looked at lazily: one that is only asked for its contents (a shape, a scale of
// Resize) never becomes a value of the graph.
#include "ridge/onnx/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/glob.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/onnx/file/model_check.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

// Values of the graph for each node of the file, beside twice what may be unrolled.
constexpr int64_t kValuesOfNode = 4;
constexpr int kManyNames = 1000;
constexpr int kMostDepth = 64;

// Constants that nodes make, beside what the file holds: a Range, an identity, what is folded.
constexpr int64_t kMostConstantBytes = int64_t{128} << 20;

// In nodes, what converting one costs when it is done again: attributes and lists are copied.
int64_t CostOf(const onnx::NodeProto& node) {
  size_t bytes = 0;
  for (const onnx::AttributeProto& attr : node.attribute()) {
    if (!attr.has_g() && attr.graphs().empty()) bytes += attr.ByteSizeLong();
  }
  return (node.input_size() + node.output_size()) / 16 + static_cast<int64_t>(bytes / 1024);
}

int64_t CostOf(const onnx::GraphProto& body) {
  size_t bytes = 0;
  for (const onnx::TensorProto& tensor : body.initializer()) bytes += tensor.ByteSizeLong();
  return (body.input_size() + body.output_size()) / 16 + static_cast<int64_t>(bytes / 1024);
}

std::string FunctionKey(const std::string& domain, const std::string& name,
                        const std::string& overload) {
  return domain + "|" + name + "|" + overload;
}

Status Usage(const std::string& file, const std::string& text) {
  return Status(ErrorCode::kInvalidArgument, file + ": " + text);
}

// Operators by name with the nodes that use them.
using Missing = std::map<std::string, std::vector<std::string>>;

std::string MissingText(const Missing& missing) {
  std::vector<std::string> parts;
  for (const auto& [op, nodes] : missing) {
    const size_t shown = std::min<size_t>(nodes.size(), 3);
    std::string part = fmt::format(
        "{} ({}", op,
        fmt::join(std::vector<std::string>(nodes.begin(), nodes.begin() + shown), ", "));
    if (nodes.size() > shown) part += fmt::format(" and {} more", nodes.size() - shown);
    parts.push_back(part + ")");
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string OnnxWhere(const onnx::NodeProto& node) {
  const std::string& name =
      !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
  constexpr size_t kLongest = 200;  // nodes of the graph carry this text
  return fmt::format("{} '{}'", node.op_type().substr(0, kLongest), name.substr(0, kLongest));
}

OnnxImporter::OnnxImporter(const OnnxModel& model, const OnnxImportOptions& options)
    : model_(model),
      options_(options),
      roles_(model, options),
      builder_(model.proto().graph().name().empty() ? "model" : model.proto().graph().name()) {
  builder_.FoldConstants(options.fold_work);
  // Constants of nodes and subgraphs are still in the message.
  constant_bytes_left_ =
      kMostConstantBytes + 2 * static_cast<int64_t>(model.proto().ByteSizeLong());
  for (const onnx::FunctionProto& function : model.proto().functions()) {
    functions_[FunctionKey(function.domain(), function.name(), function.overload())] = &function;
  }
  for (const onnx::OperatorSetIdProto& set : model.proto().opset_import())
    opsets_.emplace(set.domain() == "ai.onnx" ? "" : set.domain(), set.version());
}

Result<OnnxImport> OnnxImporter::Run() {
  const onnx::GraphProto& graph = model_.proto().graph();
  scopes_.emplace_back();
  scopes_.back().top = true;
  RIDGE_RETURN_IF_ERROR(CheckOperators(graph));
  RIDGE_RETURN_IF_ERROR(BindInputs());
  for (const auto& [name, tensor] : model_.initializers())
    scopes_.back().names[name].initializer = &tensor;
  RIDGE_RETURN_IF_ERROR(Walk(graph));
  RIDGE_RETURN_IF_ERROR(AddOutputs());
  return Finish();
}

Status OnnxImporter::BindInputs() {
  std::set<std::string> used;
  for (const OnnxValueInfo& info : model_.inputs()) {
    if (!info.supported) {
      return Status(ErrorCode::kUnsupported, fmt::format("{}: input '{}' is no tensor of numbers",
                                                         model_.name(), info.name));
    }
    const auto known = options_.known_inputs.find(info.name);
    if (known != options_.known_inputs.end()) {
      Bind(info.name, builder_.Constant(known->second, info.name));
      for (const OnnxDim& dim : info.dims) used.insert(dim.name);
      continue;
    }
    TensorType type{info.dtype, {}};
    std::vector<std::string> names;
    for (const OnnxDim& dim : info.dims) {
      const auto bound = options_.dims.find(dim.name);
      if (dim.extent < 0 && bound == options_.dims.end()) {
        return Usage(model_.name(),
                     fmt::format("dimension '{}' of input '{}' is open. hint: --dim {}=N", dim.name,
                                 info.name, dim.name));
      }
      used.insert(dim.name);
      type.dims.push_back(dim.extent < 0 ? bound->second : dim.extent);
      names.push_back(dim.name);
    }
    RIDGE_RETURN_IF_ERROR(CheckDims(type.dims));
    const Value value = builder_.Input(info.name, std::move(type), std::move(names));
    named_.insert(value.id);
    Bind(info.name, value);
  }
  for (const auto& [name, extent] : options_.dims) {
    if (!used.contains(name))
      return Usage(model_.name(), fmt::format("no input has a dimension named '{}'", name));
  }
  return builder_.status();
}

// All operators that we lack are named at once, before anything is built.
Status OnnxImporter::CheckOperators(const onnx::GraphProto& graph) const {
  Missing missing;
  std::vector<const onnx::GraphProto*> open = {&graph};
  auto look = [&](const onnx::NodeProto& node) {
    if (FindFunction(node) == nullptr &&
        FindOnnxConverter(node.domain(), node.op_type()) == nullptr)
      missing[node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type()]
          .push_back(
              "'" + (node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name()) +
              "'");
    for (const onnx::AttributeProto& attr : node.attribute()) {
      if (attr.has_g()) open.push_back(&attr.g());
    }
  };
  for (const onnx::FunctionProto& function : model_.proto().functions()) {
    for (const onnx::NodeProto& node : function.node()) look(node);
  }
  while (!open.empty()) {
    const onnx::GraphProto* next = open.back();
    open.pop_back();
    for (const onnx::NodeProto& node : next->node()) look(node);
  }
  if (missing.empty()) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: no operator for {}", model_.name(), MissingText(missing)));
}

Status OnnxImporter::Walk(const onnx::GraphProto& graph) {
  for (const onnx::NodeProto& node : graph.node()) RIDGE_RETURN_IF_ERROR(ConvertNode(node));
  return Status();
}

// Attributes of a function's nodes may stand for those of its call; an absent one is left out.
const onnx::NodeProto& OnnxImporter::Resolve(const onnx::NodeProto& proto,
                                             onnx::NodeProto& storage) const {
  const bool refers = std::any_of(proto.attribute().begin(), proto.attribute().end(),
                                  [](const auto& a) { return !a.ref_attr_name().empty(); });
  if (!refers) return proto;
  const Scope* scope = nullptr;
  for (auto at = scopes_.rbegin(); at != scopes_.rend() && scope == nullptr; ++at) {
    if (at->opaque) scope = &*at;
  }
  storage = proto;
  storage.clear_attribute();
  for (const onnx::AttributeProto& attr : proto.attribute()) {
    if (attr.ref_attr_name().empty()) {
      *storage.add_attribute() = attr;
    } else if (scope != nullptr && scope->attributes.contains(attr.ref_attr_name())) {
      onnx::AttributeProto& given = *storage.add_attribute();
      given = *scope->attributes.at(attr.ref_attr_name());
      given.set_name(attr.name());
    }
  }
  return storage;
}

Status OnnxImporter::ConvertNode(const onnx::NodeProto& proto) {
  onnx::NodeProto storage;
  const onnx::NodeProto& resolved = Resolve(proto, storage);
  if (scopes_.size() > 1) RIDGE_RETURN_IF_ERROR(ChargeUnrollBudget(1));
  RIDGE_RETURN_IF_ERROR(ChargeRepeat(CostOf(resolved)));
  if (scopes_.size() == 1) {
    ++file_nodes_;
    const int names = resolved.input_size() + resolved.output_size();
    if (names > kManyNames)
      RIDGE_RETURN_IF_ERROR(ChargeUnrollBudget(names));  // a Sum of them is as many nodes
  }
  if (const onnx::FunctionProto* function = FindFunction(resolved); function != nullptr)
    return CallFunction(*function, resolved);
  const OnnxConverter* converter = FindOnnxConverter(resolved.domain(), resolved.op_type());
  const std::string where = OnnxWhere(resolved);
  builder_.set_location(where);
  OnnxNode node(*this, resolved, Opset(resolved.domain()));
  Status status = converter->Convert(node);
  if (status.ok()) status = node.status();
  if (!status.ok()) {
    if (status.message().starts_with(model_.name() + ": ")) return status;  // from a subgraph
    const bool placed = status.message().find(where) != std::string::npos;
    return Status(status.code(), fmt::format("{}: {}{}", model_.name(), placed ? "" : where + ": ",
                                             status.message()));
  }
  for (int i = 0; i < resolved.output_size(); ++i) {
    if (!resolved.output(i).empty() && Find(resolved.output(i)) == nullptr)
      unset_[resolved.output(i)] = where;
  }
  return CheckGrowth();
}

// Bounds the graph: a few short nodes of the file must not expand into very many.
Status OnnxImporter::CheckGrowth() {
  const auto& values = builder_.graph().values();
  for (; counted_values_ < values.size(); ++counted_values_) {
    const ValueInfo& info = values[counted_values_];
    if (info.kind == ValueKind::kConstant) constant_bytes_left_ -= info.constant.bytes();
  }
  if (constant_bytes_left_ < 0) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: constants that nodes make need more than {} MiB", model_.name(),
                              kMostConstantBytes >> 20));
  }
  const int64_t most = 2 * options_.max_unrolled_nodes + kValuesOfNode * file_nodes_;
  if (static_cast<int64_t>(builder_.graph().values().size()) <= most) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: {} nodes of the file become more than {} values", model_.name(),
                            file_nodes_, most));
}

const onnx::FunctionProto* OnnxImporter::FindFunction(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(FunctionKey(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

// The body sees its inputs and attributes only.
Status OnnxImporter::CallFunction(const onnx::FunctionProto& function,
                                  const onnx::NodeProto& call) {
  if (depth_ >= kMostDepth) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: {}: functions and subgraphs are nested more than {} deep",
                              model_.name(), OnnxWhere(call), kMostDepth));
  }
  Scope scope;
  scope.opaque = true;
  for (const onnx::OperatorSetIdProto& set : function.opset_import())
    scope.opsets[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
  for (const onnx::AttributeProto& attr : function.attribute_proto())
    scope.attributes[attr.name()] = &attr;
  for (const onnx::AttributeProto& attr : call.attribute()) scope.attributes[attr.name()] = &attr;
  for (int i = 0; i < function.input_size() && i < call.input_size(); ++i) {
    if (const OnnxBinding* binding = Find(call.input(i)); binding != nullptr)
      scope.names[function.input(i)] = {ValueOf(call.input(i)), binding->initializer};
  }
  const int again = visited_.insert(&function).second ? 0 : 1;
  repeats_ += again;
  ++depth_;
  scopes_.push_back(std::move(scope));
  Status status;
  for (const onnx::NodeProto& node : function.node()) {
    status = ConvertNode(node);
    if (!status.ok()) break;
  }
  std::vector<Value> results;
  for (const std::string& name : function.output())
    results.push_back(status.ok() ? ValueOf(name) : Value());
  scopes_.pop_back();
  --depth_;
  repeats_ -= again;
  RIDGE_RETURN_IF_ERROR(status);
  for (int i = 0; i < call.output_size() && i < function.output_size(); ++i) {
    if (!call.output(i).empty() && results[static_cast<size_t>(i)].valid())
      Bind(call.output(i), results[static_cast<size_t>(i)]);
  }
  return builder_.status();
}

int64_t OnnxImporter::Opset(const std::string& domain) const {
  const std::string key = domain == "ai.onnx" ? "" : domain;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->opsets.find(key);
    if (found != scope->opsets.end()) return found->second;
    if (scope->opaque) break;
  }
  const auto found = opsets_.find(key);
  return found == opsets_.end() ? 0 : found->second;
}

OnnxBinding* OnnxImporter::Find(const std::string& name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return &found->second;
    if (scope->opaque) break;
  }
  return nullptr;
}

Value OnnxImporter::ValueOf(const std::string& name) {
  OnnxBinding* binding = Find(name);
  if (binding == nullptr) return {};
  if (!binding->value.valid() && binding->initializer != nullptr && builder_.ok())
    binding->value = UseInitializer(name, *binding->initializer);
  return binding->value;
}

// Frees a name of the file that a node of ours took.
std::string OnnxImporter::Claim(const std::string& name) {
  Graph& graph = builder_.graph();
  const ValueId taken = graph.FindValue(name);
  if (taken == kNoValue) return name;
  if (named_.contains(taken)) return graph.UniqueName(name);
  graph.Rename(taken, graph.UniqueName(name + ".inner"));
  return name;
}

Value OnnxImporter::UseInitializer(const std::string& name, const Tensor& tensor) {
  Value value;
  const std::string free = Claim(name);
  const bool is_float = IsFloat(tensor.type().dtype);
  const bool trained = is_float && roles_.Trained(name, tensor);
  const bool frozen = is_float && !trained &&
                      std::any_of(options_.freeze.begin(), options_.freeze.end(),
                                  [&](const auto& p) { return MatchesPattern(name, p); });
  if (trained || frozen) {
    value = builder_.Parameter(free, tensor.type(), Init::FromTensor(tensor));
  } else {
    const Tensor* numbers = InMemory(tensor);
    if (numbers == nullptr) return {};
    value = builder_.Constant(*numbers, free);
    constant_bytes_left_ += tensor.bytes();  // the file's own
  }
  if (is_float && !trained && !frozen) fixed_.push_back(name);
  named_.insert(value.id);
  return value;
}

// Tensors of external data may overlap, so that a short file could fill the memory.
const Tensor* OnnxImporter::InMemory(const Tensor& initializer) {
  if (initializer.in_memory()) return &initializer;
  const auto [found, first] = loaded_.try_emplace(&initializer);
  if (!first) return &found->second;
  loaded_bytes_ += initializer.bytes();
  Result<Tensor> loaded = Status();
  if (loaded_bytes_ > 8 * model_.file_bytes()) {
    loaded = Status(ErrorCode::kInvalidModel,
                    fmt::format("constants need more than eight times the {} bytes of the model's "
                                "files in memory, because they overlap",
                                model_.file_bytes()));
  } else {
    loaded = initializer.Load();
  }
  if (loaded.ok()) return &(found->second = *std::move(loaded));
  loaded_.erase(found);
  if (file_status_.ok()) file_status_ = loaded.status();
  builder_.Fail(loaded.status());
  return nullptr;
}

Status OnnxImporter::Cause(const Status& status) const {
  if (file_status_.ok()) return status;
  if (file_status_.message().starts_with(model_.name() + ": ")) return file_status_;
  return Status(file_status_.code(), model_.name() + ": " + file_status_.message());
}

Value OnnxImporter::StatisticOf(const std::string& name) {
  OnnxBinding* binding = Find(name);
  if (binding == nullptr || binding->value.valid() || binding->initializer == nullptr)
    return ValueOf(name);
  const Tensor& tensor = *binding->initializer;
  binding->value =
      builder_.State(Claim(name), tensor.type(), Init::FromTensor(tensor), ValueRole::kStatistic);
  named_.insert(binding->value.id);
  return binding->value;
}

const Tensor* OnnxImporter::ConstantOf(const std::string& name) {
  OnnxBinding* binding = Find(name);
  if (binding == nullptr) return nullptr;
  if (binding->initializer != nullptr) return InMemory(*binding->initializer);
  if (!binding->value.valid()) return nullptr;
  const ValueInfo& info = builder_.graph().value(binding->value.id);
  if (info.kind != ValueKind::kConstant || SequenceOf(binding->value) != nullptr) return nullptr;
  return &info.constant;
}

const Tensor* OnnxImporter::FixedOf(const std::string& name) {
  const OnnxBinding* binding = Find(name);
  const Tensor* initializer = binding == nullptr ? nullptr : binding->initializer;
  const bool learns = initializer != nullptr && IsFloat(initializer->type().dtype) &&
                      roles_.Learns(name, *initializer);
  return learns ? nullptr : ConstantOf(name);
}

void OnnxImporter::Bind(const std::string& name, Value value) {
  Scope& scope = scopes_.back();
  scope.names[name] = {value, nullptr};
  if (!value.valid() || !scope.top || named_.contains(value.id)) return;
  Graph& graph = builder_.graph();
  if (graph.value(value.id).name != name) graph.Rename(value.id, Claim(name));
  named_.insert(value.id);
}

void OnnxImporter::BindConstant(const std::string& name, Tensor tensor) {
  Scope& scope = scopes_.back();
  if (!scope.top || !roles_.IsInitializer(name, tensor))
    return Bind(name, builder_.Constant(std::move(tensor)));
  scope.names[name].initializer = &(constants_[name] = std::move(tensor));
}

Value OnnxImporter::Rng() {
  if (!rng_.valid()) rng_ = builder_.Input("rng", {DType::kI64, {3}});
  return rng_;
}

Status OnnxImporter::ChargeUnrollBudget(int64_t nodes) {
  charged_nodes_ += nodes;
  if (charged_nodes_ <= options_.max_unrolled_nodes) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: loops and functions unroll to more than {} nodes", model_.name(),
                            options_.max_unrolled_nodes));
}

Result<std::vector<Value>> OnnxImporter::Inline(const onnx::GraphProto& body,
                                                const std::vector<Value>& inputs) {
  if (depth_ >= kMostDepth) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("{}: subgraphs are nested more than {} deep", model_.name(), kMostDepth));
  }
  const int again = visited_.insert(&body).second ? 0 : 1;
  repeats_ += again;
  RIDGE_RETURN_IF_ERROR(ChargeRepeat(CostOf(body)));
  ++depth_;
  scopes_.emplace_back();
  for (int i = 0; i < body.input_size() && static_cast<size_t>(i) < inputs.size(); ++i)
    scopes_.back().names[body.input(i).name()] = {inputs[static_cast<size_t>(i)], nullptr};
  Status status = BindInitializers(body);
  if (status.ok()) status = Walk(body);
  std::vector<Value> results;
  for (const onnx::ValueInfoProto& output : body.output()) {
    const Value value = status.ok() ? ValueOf(output.name()) : Value();
    if (status.ok() && !value.valid()) {
      status = Status(
          ErrorCode::kInvalidModel,
          fmt::format("{}: subgraph output '{}' is made by no node", model_.name(), output.name()));
    }
    results.push_back(value);
  }
  scopes_.pop_back();
  --depth_;
  repeats_ -= again;
  RIDGE_RETURN_IF_ERROR(status);
  RIDGE_RETURN_IF_ERROR(builder_.status());
  return results;
}

// Those of subgraphs are small constants.
Status OnnxImporter::BindInitializers(const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& proto : graph.initializer()) {
    RIDGE_ASSIGN_OR_RETURN(Tensor tensor, CopyTensor(proto, model_.external_files()));
    scopes_.back().names[proto.name()] = {builder_.Constant(std::move(tensor)), nullptr};
  }
  return builder_.status();
}

Status OnnxImporter::AddOutputs() {
  if (model_.outputs().empty())
    return Status(ErrorCode::kInvalidModel, model_.name() + ": the graph has no output");
  for (const OnnxValueInfo& info : model_.outputs()) {
    const Value value = ValueOf(info.name);
    if (!value.valid()) {
      const auto unset = unset_.find(info.name);
      return Status(
          ErrorCode::kInvalidModel,
          fmt::format("{}: output '{}' is {}", model_.name(), info.name,
                      unset == unset_.end() ? "made by no node" : "not given by " + unset->second));
    }
    if (SequenceOf(value) != nullptr) {
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{}: output '{}' is a sequence of tensors; outputs must be tensors",
                                model_.name(), info.name));
    }
    builder_.Output(info.name, value);
  }
  return builder_.status();
}

Result<OnnxImport> OnnxImporter::Finish() {
  RIDGE_ASSIGN_OR_RETURN(Graph live, std::move(builder_).Build());
  RIDGE_ASSIGN_OR_RETURN(live, RemoveDead(std::move(live)));
  return OnnxImport{std::move(live), std::move(fixed_), std::move(notes_)};
}

Result<OnnxImport> ImportOnnx(const OnnxModel& model, const OnnxImportOptions& options) {
  OnnxImporter importer(model, options);
  Result<OnnxImport> import = importer.Run();
  if (!import.ok()) return PrintableOnnxStatus(importer.Cause(import.status()));
  return import;
}

std::vector<std::string> OpenOnnxDims(const OnnxModel& model,
                                      const std::map<std::string, int64_t>& dims) {
  std::vector<std::string> open;
  std::set<std::string> seen;
  for (const OnnxValueInfo& info : model.inputs()) {
    for (const OnnxDim& dim : info.dims) {
      const bool wanted = dim.extent < 0 && !dims.contains(dim.name);
      if (wanted && seen.insert(dim.name).second) open.push_back(dim.name);
    }
  }
  return open;
}

}  // namespace ridge
