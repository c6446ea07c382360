#include "ridge/onnx/import/converter.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ridge/onnx/import/converters/math.h"

namespace ridge {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

// The pointwise operators and reductions of ours that a record names in ONNX, by that name.
const std::map<std::string_view, const OpDef*>& NamedOps() {
  static const auto ops = [] {
    std::map<std::string_view, const OpDef*> map;
    for (const OpDef& op : AllOps()) {
      const bool named = op.onnx.name != nullptr;
      if (named && (op.elementwise != nullptr || IsReduction(op))) map.emplace(op.onnx.name, &op);
    }
    return map;
  }();
  return ops;
}

// ONNX's numbers are floats, and so are their defaults.
Attr ReadAttr(OnnxNode& n, const std::string& name, const Attr& fallback) {
  if (const auto* integer = std::get_if<int64_t>(&fallback)) return n.integer(name, *integer);
  if (const auto* text = std::get_if<std::string>(&fallback)) return n.text(name, *text);
  const auto* number = std::get_if<double>(&fallback);
  RIDGE_CHECK(number != nullptr, name + " is no attribute that both have");
  return n.number(name, static_cast<double>(static_cast<float>(*number)));
}

// The operator that the record names: the same inputs, and attributes by name.
Result<Value> ConvertAsDefined(OnnxNode& n) {
  const OpDef& op = *NamedOps().at(n.op_type());
  if (IsReduction(op)) return ConvertReduction(n, op);
  RIDGE_RETURN_IF_ERROR(n.Need(op.input_names.size()));
  std::vector<Value> inputs;
  for (size_t i = 0; i < op.input_names.size(); ++i) inputs.push_back(n[i]);
  AttrMap attrs;
  for (const auto& [name, fallback] : op.attr_defaults) attrs[name] = ReadAttr(n, name, fallback);
  return Op(op.name.c_str(), inputs, std::move(attrs));
}

const std::vector<OnnxConverter>& NamedConverters() {
  static const auto converters = [] {
    std::vector<OnnxConverter> all;
    for (const auto& [name, op] : NamedOps()) all.push_back({"", op->onnx.name, ConvertAsDefined});
    return all;
  }();
  return converters;
}

const std::map<Key, const OnnxConverter*>& Table() {
  static const auto table = [] {
    std::map<Key, const OnnxConverter*> map;
#define RIDGE_ONNX_FAMILY(Name)                               \
  for (const OnnxConverter& entry : Onnx##Name##Converters()) \
    map.emplace(Key{entry.domain, entry.op_type}, &entry);
#include "ridge/onnx/import/converters/families.def"
#undef RIDGE_ONNX_FAMILY
    for (const OnnxConverter& entry : NamedConverters())
      map.emplace(Key{entry.domain, entry.op_type}, &entry);
    return map;
  }();
  return table;
}

}  // namespace

Status OnnxConverter::Run(OnnxNode& node) const {
  if (of_several_ != nullptr) return of_several_(node);
  RIDGE_ASSIGN_OR_RETURN(const Value y, of_one_(node));
  node.Set(0, y);
  return Status();
}

// The builder's error came before one that the converter returns, unless that is the builder's own
// with the place that a subgraph gave it.
Status OnnxConverter::Convert(OnnxNode& node) const {
  RIDGE_RETURN_IF_ERROR(node.Need(inputs_));
  const Status status = Run(node);
  if (node.ok()) return status;
  const Status first = node.status();
  return status.message().find(first.message()) != std::string::npos ? status : first;
}

const OnnxConverter* FindOnnxConverter(std::string_view domain, std::string_view op_type) {
  const auto found = Table().find({domain == "ai.onnx" ? "" : domain, op_type});
  return found == Table().end() ? nullptr : found->second;
}

std::vector<const OnnxConverter*> AllOnnxConverters() {
  std::vector<const OnnxConverter*> all;
  for (const auto& [key, converter] : Table()) all.push_back(converter);
  return all;
}

}  // namespace ridge
