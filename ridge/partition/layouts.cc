#include "ridge/partition/layouts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/partition/tensor_pairs.h"

namespace ridge {
namespace {

Status Refused(const std::string& what) { return Status(ErrorCode::kInvalidArgument, what); }

// ---- data

bool NamesBatch(const ValueInfo& info) {
  return !info.dim_names.empty() && info.dim_names[0] == "batch";
}

// Inputs whose first dimension counts samples: those that say so, or else all that have the first
// extent of the first one.
std::vector<ValueId> SampleInputs(const Graph& graph) {
  std::vector<ValueId> named, alike;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    if (info.type.rank() == 0) continue;
    if (NamesBatch(info)) named.push_back(id);
    if (alike.empty() || graph.type(alike[0]).dims[0] == info.type.dims[0]) alike.push_back(id);
  }
  return named.empty() ? alike : named;
}

Status CutSamples(const Graph& graph, const Mesh& mesh, int axis, Layout& layout) {
  for (ValueId id : SampleInputs(graph)) {
    const ValueInfo& info = graph.value(id);
    const Cut cut{0, axis, 1};
    if (!CanCut(info.type.dims, {}, cut, mesh)) {
      return Refused(fmt::format(
          "mesh {}: d={} does not divide the batch of {} (input '{}' is {}). "
          "hint: --batch {}",
          MeshText(mesh), mesh.size(axis), info.type.dims[0], info.name, TypeToString(info.type),
          (info.type.dims[0] / mesh.size(axis) + 1) * mesh.size(axis)));
    }
    layout.use[id].Add(cut);
  }
  return Status();
}

// ---- tensor and sequence

// Between pairs every token has a device: the products of rows are summed to parts of the tokens.
void CutTokens(const Graph& graph, const Mesh& mesh, int axis, const std::vector<TensorPair>& pairs,
               Layout& layout) {
  const Proposal before = Propagate(graph, layout, mesh);
  for (const TensorPair& pair : pairs) {
    const TensorType& type = graph.type(pair.result);
    Split split = before.splits[static_cast<size_t>(pair.result)];
    split.Remove(axis);
    const Cut cut{type.rank() - 2, axis, 1};
    if (type.rank() < 3 || !CanCut(type.dims, split, cut, mesh)) continue;
    split.Add(cut);
    layout.use[pair.result] = std::move(split);
  }
}

Status CutWeights(const Graph& graph, const Mesh& mesh, int axis, const Sharding& sharding,
                  Layout& layout, std::vector<TensorPair>* pairs) {
  TensorPairs found = FindTensorPairs(graph, mesh, axis);
  if (found.pairs.empty()) {
    return Refused(fmt::format(
        "mesh {}: t={} finds no two products of '{}' between which features stay apart, as in "
        "attention and MLP, or their heads and features are no multiples of {}. hint: use d alone, "
        "which cuts the batch",
        MeshText(mesh), mesh.size(axis), graph.name, mesh.size(axis)));
  }
  for (auto& [id, split] : found.weights) layout.use[id] = std::move(split);
  if (sharding.sequence) CutTokens(graph, mesh, axis, found.pairs, layout);
  if (pairs != nullptr) *pairs = std::move(found.pairs);
  return Status();
}

void UseAlike(const Graph& graph, const std::map<std::string, Split>& uses, Layout& layout) {
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    const auto known = uses.find(graph.value(id).name);
    if (known != uses.end()) layout.use[id] = known->second;
  }
}

// ---- optimizers

// States of an update lie as its parameter is used: what a gradient happens to be cut by does not
// spread to them, nor from them to activations.
void PlaceStates(const Graph& graph, Layout& layout) {
  for (const Node& node : graph.nodes()) {
    if (node.op->cost_class != CostClass::kOptimizer) continue;
    const auto used = layout.use.find(node.inputs[0]);
    const Split split = used == layout.use.end() ? Split() : used->second;
    for (ValueId id : node.inputs) {
      if (id == kNoValue || graph.value(id).kind != ValueKind::kState) continue;
      const bool alike = graph.type(id).dims == graph.type(node.inputs[0]).dims;
      layout.use[id] = alike ? split : Split();
    }
  }
}

// A dimension that is not cut yet, or else inside the parts of one that is; unchanged where no
// extent is a multiple.
Split AlsoCut(const Dims& dims, Split split, int axis, const Mesh& mesh) {
  std::vector<Cut> choices;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    const bool taken =
        std::any_of(split.cuts.begin(), split.cuts.end(), [d](const Cut& c) { return c.dim == d; });
    if (!taken) choices.push_back({d, axis, 1});
  }
  for (const Cut& c : split.cuts) choices.push_back({c.dim, axis, c.blocks * mesh.size(c.axis)});
  for (const Cut& cut : choices) {
    if (!CanCut(dims, split, cut, mesh)) continue;
    split.Add(cut);
    break;
  }
  return split;
}

bool IsStored(const ValueInfo& info, int zero) {
  if (info.kind == ValueKind::kParameter) return zero >= 3;
  return (info.role == ValueRole::kOptimizer && zero >= 1) ||
         (info.role == ValueRole::kGradient && zero >= 2);
}

void StoreInParts(const Graph& graph, const Mesh& mesh, int axis, int zero, Layout& layout) {
  const Proposal proposal = Propagate(graph, layout, mesh);
  const auto store = [&](ValueId id) {
    const ValueInfo& info = graph.value(id);
    if (IsStored(info, zero))
      layout.stored[id] =
          AlsoCut(info.type.dims, proposal.splits[static_cast<size_t>(id)], axis, mesh);
  };
  for (const GraphUpdate& update : graph.updates()) store(update.variable);
  // Those that another step of the job updates, too.
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) store(id);
}

// Sums of gradients stay pending from batch to batch, and are complete once an update.
void KeepSumsPending(const Graph& graph, int axis, Layout& layout) {
  for (const GraphUpdate& update : graph.updates()) {
    const ValueInfo& info = graph.value(update.variable);
    if (info.role != ValueRole::kGradient || info.kind != ValueKind::kState) continue;
    const auto used = layout.use.find(update.variable);
    Split stored = used == layout.use.end() ? Split() : used->second;
    if (!stored.Uses(axis)) stored.AddPending({axis, Factor::Over::kSum});
    layout.stored[update.variable] = std::move(stored);
  }
}

Status CheckAxes(const Mesh& mesh, const Sharding& sharding) {
  for (const MeshAxis& axis : mesh.axes) {
    if (axis.name == kDataAxis || axis.name == kTensorAxis) continue;
    return Refused(
        fmt::format("mesh {}: axis {} has no use here; d cuts the batch and t the "
                    "weights of attention and MLP. hint: name the axes d and t",
                    MeshText(mesh), axis.name));
  }
  if (sharding.zero > 0 && mesh.Find(kDataAxis) < 0) {
    return Refused(
        fmt::format("mesh {} has no axis d, along which zero{} stores parts. hint: add "
                    "d=2",
                    MeshText(mesh), sharding.zero));
  }
  if (sharding.sequence && mesh.Find(kTensorAxis) < 0) {
    return Refused(
        fmt::format("mesh {} has no axis t, along which sequence cuts tokens. hint: add "
                    "t=2",
                    MeshText(mesh)));
  }
  return Status();
}

}  // namespace

Result<Sharding> ParseSharding(const std::string& text) {
  Sharding sharding;
  if (text.empty() || text == "none") return sharding;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word == "sequence" && !sharding.sequence) {
      sharding.sequence = true;
    } else if (word.size() == 5 && word.starts_with("zero") && word[4] >= '1' && word[4] <= '3' &&
               sharding.zero == 0) {
      sharding.zero = word[4] - '0';
    } else {
      return Refused(
          fmt::format("shard \"{}\": \"{}\" must be one of zero1, zero2, zero3 and "
                      "sequence, each kind once. hint: write zero3,sequence",
                      text, word));
    }
    begin = end + 1;
  }
  return sharding;
}

std::string ShardingText(const Sharding& sharding) {
  std::string text = sharding.zero > 0 ? fmt::format("zero{}", sharding.zero) : "";
  if (sharding.sequence) text += text.empty() ? "sequence" : ",sequence";
  return text.empty() ? "none" : text;
}

Result<Layout> MakeLayout(const Graph& graph, const Mesh& mesh, const Sharding& sharding,
                          std::vector<TensorPair>* pairs,
                          const std::map<std::string, Split>& uses) {
  RIDGE_RETURN_IF_ERROR(CheckAxes(mesh, sharding));
  const int data = mesh.Find(kDataAxis), tensor = mesh.Find(kTensorAxis);
  Layout layout;
  if (data >= 0 && mesh.size(data) > 1)
    RIDGE_RETURN_IF_ERROR(CutSamples(graph, mesh, data, layout));
  UseAlike(graph, uses, layout);
  const bool shares = tensor >= 0 && mesh.size(tensor) > 1;
  if (shares && (uses.empty() || !FindTensorPairs(graph, mesh, tensor).pairs.empty()))
    RIDGE_RETURN_IF_ERROR(CutWeights(graph, mesh, tensor, sharding, layout, pairs));
  PlaceStates(graph, layout);
  if (data >= 0 && mesh.size(data) > 1 && sharding.zero < 2) KeepSumsPending(graph, data, layout);
  if (data >= 0 && mesh.size(data) > 1 && sharding.zero > 0)
    StoreInParts(graph, mesh, data, sharding.zero, layout);
  return layout;
}

}  // namespace ridge
