// The table of all operators, and what every use of one is checked against.
#include "ridge/graph/op_def.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace ridge {

#define RIDGE_OP(file, Name) OpDef Name##Def();
#define RIDGE_OPS(file, Name) std::vector<OpDef> Name##Ops();
#include "ridge/graph/ops/ops.def"
#undef RIDGE_OPS
#undef RIDGE_OP

namespace {

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// How many inputs a call may have, from the names in the definition.
struct Arity {
  size_t least = 0, most = 0;
  bool Optional(const OpDef& op, size_t i) const {
    return i < op.input_names.size() && EndsWith(op.input_names[i], "?");
  }
};

Arity InputArity(const OpDef& op) {
  Arity arity;
  for (const std::string& name : op.input_names) {
    if (!EndsWith(name, "?")) arity.least = std::max(arity.least, arity.most + 1);
    ++arity.most;
  }
  const bool variadic = !op.input_names.empty() && (EndsWith(op.input_names.back(), "...") ||
                                                    EndsWith(op.input_names.back(), "...?"));
  if (variadic) arity.most = 1 << 20;
  return arity;
}

Status CheckInputs(const OpDef& op, const OpCall& call) {
  const Arity arity = InputArity(op);
  if (call.inputs.size() < arity.least || call.inputs.size() > arity.most) {
    const std::string wanted = arity.least == arity.most ? fmt::format("{}", arity.least)
                               : arity.most >= (1 << 20)
                                   ? fmt::format("at least {}", arity.least)
                                   : fmt::format("{} to {}", arity.least, arity.most);
    return CallError(call, fmt::format("has {} inputs; {} takes {} ({})", call.inputs.size(),
                                       op.name, wanted, fmt::join(op.input_names, ", ")));
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.has_input(i) && !arity.Optional(op, i)) {
      const std::string& name = op.input_names[std::min(i, op.input_names.size() - 1)];
      return CallError(call, fmt::format("input {} ({}) must be given", i, name));
    }
  }
  return Status();
}

// Integers are accepted where numbers are declared, and an empty list where a list is.
bool Convert(const Attr& declared, Attr& given) {
  if (given.index() == declared.index()) return true;
  if (std::holds_alternative<double>(declared) && std::holds_alternative<int64_t>(given)) {
    given = static_cast<double>(std::get<int64_t>(given));
    return true;
  }
  const auto* integers = std::get_if<std::vector<int64_t>>(&given);
  if (std::holds_alternative<std::vector<double>>(declared) && integers != nullptr) {
    given = std::vector<double>(integers->begin(), integers->end());
    return true;
  }
  return false;
}

Status CheckAttr(const OpDef& op, const OpCall& call, const std::string& name, Attr& value) {
  const auto declared = op.attr_defaults.find(name);
  if (declared == op.attr_defaults.end()) {
    std::vector<std::string> known;
    for (const auto& entry : op.attr_defaults) known.push_back(entry.first);
    return CallError(
        call, fmt::format("has no attribute '{}'; {} knows: {}", name, op.name,
                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  if (Convert(declared->second, value)) return Status();
  return CallError(call, fmt::format("attribute '{}' is {}; it must be {}", name,
                                     AttrKindName(value), AttrKindName(declared->second)));
}

// Whether all attributes are there, of their declared kinds: then nothing is to be done.
bool AttrsComplete(const OpDef& op, const AttrMap& attrs) {
  if (attrs.size() != op.attr_defaults.size()) return false;
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.index() == b.second.index();
  };
  return std::equal(attrs.begin(), attrs.end(), op.attr_defaults.begin(), same);
}

Status CompleteAttrs(const OpDef& op, OpCall& call) {
  if (AttrsComplete(op, call.attrs)) return Status();
  if (!call.attrs.empty()) {
    for (auto& [name, value] : call.attrs) RIDGE_RETURN_IF_ERROR(CheckAttr(op, call, name, value));
  }
  for (const std::string& name : op.required_attrs) {
    if (!call.attrs.contains(name))
      return CallError(call, fmt::format("attribute '{}' must be given", name));
  }
  if (call.attrs.empty()) {
    call.attrs = op.attr_defaults;  // shared by all calls that give none
  } else {
    call.attrs.merge(op.attr_defaults);
  }
  return Status();
}

// The element of a broadcast input that belongs to output element `index`.
class BroadcastIndex {
 public:
  BroadcastIndex(const Dims& input, const Dims& output)
      : out_strides_(RowMajorStrides(output)), strides_(output.size(), 0), extents_(output) {
    const Dims in_strides = RowMajorStrides(input);
    const size_t offset = output.size() - input.size();
    for (size_t d = 0; d < input.size(); ++d) {
      if (input[d] != 1) strides_[offset + d] = in_strides[d];
    }
  }
  int64_t operator()(int64_t index) const {
    int64_t at = 0;
    for (size_t d = 0; d < strides_.size(); ++d)
      at += index / out_strides_[d] % extents_[d] * strides_[d];
    return at;
  }

 private:
  Dims out_strides_, strides_, extents_;
};

void RunPointwise(const OpDef& op, const OpCall& call, std::span<const double* const> in,
                  double* out) {
  std::vector<BroadcastIndex> at;
  for (const TensorType& type : call.inputs) at.emplace_back(type.dims, call.outputs[0].dims);
  std::vector<double> args(in.size());
  const int64_t count = call.outputs[0].elements();
  for (int64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < in.size(); ++k) args[k] = in[k][at[k](i)];
    out[i] = op.elementwise(args, call.attrs);
  }
}

void Append(std::vector<OpDef> family, std::vector<OpDef>& all) {
  std::move(family.begin(), family.end(), std::back_inserter(all));
}

}  // namespace

const std::vector<OpDef>& AllOps() {
  static const std::vector<OpDef> ops = [] {
    std::vector<OpDef> all;
#define RIDGE_OP(file, Name) all.push_back(Name##Def());
#define RIDGE_OPS(file, Name) Append(Name##Ops(), all);
#include "ridge/graph/ops/ops.def"
#undef RIDGE_OPS
#undef RIDGE_OP
    return all;
  }();
  return ops;
}

const OpDef* FindOp(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const OpDef*> map;
    for (const OpDef& op : AllOps()) map.emplace(op.name, &op);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

Status CallError(const OpCall& call, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, call.where + ": " + text);
}

Result<std::vector<TensorType>> InferCall(const OpDef& op, OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckInputs(op, call));
  RIDGE_RETURN_IF_ERROR(CompleteAttrs(op, call));
  RIDGE_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, op.infer_types(call));
  for (const TensorType& type : outputs) {
    if (Status status = CheckDims(type.dims); !status.ok())
      return CallError(call, status.message());
  }
  return outputs;
}

Cost StreamingCost(const OpCall& call, int64_t flops) {
  Cost cost{.flops = flops};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i)) cost.bytes_read += call.inputs[i].bytes();
  }
  for (const TensorType& type : call.outputs) cost.bytes_written += type.bytes();
  return cost;
}

Cost CallCost(const OpDef& op, const OpCall& call) {
  return op.cost != nullptr ? op.cost(call) : StreamingCost(call, /*flops=*/0);
}

void RunReference(const OpDef& op, const OpCall& call, std::span<const double* const> in,
                  std::span<double* const> out) {
  if (op.reference != nullptr) {
    op.reference(call, in, out);
  } else {
    RIDGE_CHECK(op.elementwise != nullptr, op.name + " has neither reference nor elementwise");
    RunPointwise(op, call, in, out[0]);
  }
}

}  // namespace ridge
