#include "ridge/partition/collectives.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

AttrMap AxisAttrs() { return {{"axis", ""}, {"ranks", 1}}; }

AttrMap PartAttrs() {
  AttrMap attrs = AxisAttrs();
  attrs["dim"] = int64_t{0};
  attrs["blocks"] = int64_t{1};
  return attrs;
}

Result<TensorType> Scaled(const OpCall& call, TensorType type, int64_t dim, int64_t blocks,
                          bool up) {
  const int64_t ranks = call.integer("ranks");
  if (dim < 0 || dim >= type.rank() || ranks < 1 || blocks < 1)
    return CallError(call, fmt::format("dim is {}, blocks {} and ranks {} for {}", dim, blocks,
                                       ranks, TypeToString(type)));
  int64_t& extent = type.dims[static_cast<size_t>(dim)];
  if (extent % (up ? blocks : blocks * ranks) != 0) {
    return CallError(call, fmt::format("dimension {} of {} has {} blocks on {} devices; its extent "
                                       "must be a multiple",
                                       dim, TypeToString(type), blocks, ranks));
  }
  extent = up ? extent * ranks : extent / ranks;
  return type;
}

using Types = Result<std::vector<TensorType>>;

Types SameType(const OpCall& call) { return std::vector<TensorType>{call.inputs[0]}; }

Types PartTypes(const OpCall& call) {
  RIDGE_ASSIGN_OR_RETURN(TensorType y, Scaled(call, call.inputs[0], call.integer("dim"),
                                              call.integer("blocks"), /*up=*/false));
  return std::vector<TensorType>{std::move(y)};
}

Types WholeTypes(const OpCall& call) {
  RIDGE_ASSIGN_OR_RETURN(TensorType y, Scaled(call, call.inputs[0], call.integer("dim"),
                                              call.integer("blocks"), /*up=*/true));
  return std::vector<TensorType>{std::move(y)};
}

Types MovedTypes(const OpCall& call) {
  RIDGE_ASSIGN_OR_RETURN(TensorType y, Scaled(call, call.inputs[0], call.integer("from_dim"),
                                              call.integer("from_blocks"), /*up=*/true));
  RIDGE_ASSIGN_OR_RETURN(
      y, Scaled(call, std::move(y), call.integer("dim"), call.integer("blocks"), /*up=*/false));
  return std::vector<TensorType>{std::move(y)};
}

OpDef Record(const char* name, const char* doc, AttrMap attrs, Types (*types)(const OpCall&)) {
  return {.name = name,
          .doc = doc,
          .input_names = {"x"},
          .output_names = {"y"},
          .attr_defaults = std::move(attrs),
          .required_attrs = {"axis", "ranks"},
          .cost_class = CostClass::kMove,
          .infer_types = types,
          .recompute = Recompute::kNever};
}

void LocalPartReference(const OpCall& call, std::span<const double* const> in,
                        std::span<double* const> out) {
  const Dims &whole = call.inputs[0].dims, &part = call.outputs[0].dims;
  const auto dim = static_cast<size_t>(call.integer("dim"));
  const int64_t inner = ElementCount(Dims(whole.begin() + call.integer("dim") + 1, whole.end()));
  const int64_t run = part[dim] / call.integer("blocks") * inner;  // neighbours that stay together
  const auto first = static_cast<int64_t>(in[1][0]) * run;
  for (int64_t at = 0; at < call.outputs[0].elements(); at += run)
    std::copy_n(in[0] + at * call.integer("ranks") + first, run, out[0] + at);
}

OpDef LocalPartRecord() {
  OpDef op = Record("local_part", "y = a device's part of x along `dim`.", PartAttrs(), PartTypes);
  op.input_names = {"x", "coordinate"};
  op.recompute = Recompute::kCheap;
  op.reference = LocalPartReference;
  return op;
}

AttrMap With(AttrMap attrs, std::initializer_list<AttrInit> more) {
  for (const AttrInit& attr : more) attrs[attr.name] = attr.value;
  return attrs;
}

}  // namespace

const OpDef& AllReduceOp() {
  static const OpDef op = [] {
    OpDef record = Record("all_reduce", "y = x reduced over the devices of an axis.",
                          With(AxisAttrs(), {{"reduce", "sum"}}), SameType);
    record.in_place = {{0, 0}};
    return record;
  }();
  return op;
}

const OpDef& ReduceScatterOp() {
  static const OpDef op =
      Record("reduce_scatter", "y = a device's part of x reduced over the devices of an axis.",
             With(PartAttrs(), {{"reduce", "sum"}}), PartTypes);
  return op;
}

const OpDef& AllGatherOp() {
  static const OpDef op =
      Record("all_gather", "y = the parts of all devices of an axis.", PartAttrs(), WholeTypes);
  return op;
}

const OpDef& AllToAllOp() {
  static const OpDef op =
      Record("all_to_all", "y = x cut along `dim` instead of `from_dim`.",
             With(PartAttrs(), {{"from_dim", 0}, {"from_blocks", 1}}), MovedTypes);
  return op;
}

const OpDef& LocalPartOp() {
  static const OpDef op = LocalPartRecord();
  return op;
}

bool IsCollective(const OpDef& op) {
  return &op == &AllReduceOp() || &op == &ReduceScatterOp() || &op == &AllGatherOp() ||
         &op == &AllToAllOp();
}

std::string CoordinateInput(const std::string& axis) { return "ridge.coordinate." + axis; }

MeshCollective DescribeCollective(const Graph& graph, const Node& node) {
  MeshCollective c{.op = node.op->name,
                   .axis = node.attrs.text("axis"),
                   .value = graph.value(node.inputs[0]).name,
                   .ranks = node.attrs.integer("ranks")};
  c.bytes = std::max(graph.type(node.inputs[0]).bytes(), graph.type(node.outputs[0]).bytes());
  const int64_t times = node.op == &AllReduceOp() ? 2 : 1;
  c.sent_bytes = times * c.bytes * (c.ranks - 1) / c.ranks;
  return c;
}

}  // namespace ridge
