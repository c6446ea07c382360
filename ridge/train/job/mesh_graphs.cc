#include "ridge/train/job/mesh_graphs.h"

#include <algorithm>

#include "ridge/partition/normal_form.h"

namespace ridge {
namespace {

void AddState(const StateBytes& more, bool first, StateBytes& to) {
  if (first) {  // variables are those of the other steps too
    to = more;
  } else {
    to.gradients = std::max(to.gradients, more.gradients);
    to.optimizer = std::max(to.optimizer, more.optimizer);
  }
}

bool IsVariable(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter || info.kind == ValueKind::kState;
}

class GraphsPartitioner {
 public:
  GraphsPartitioner(const Mesh& mesh, const Sharding& sharding)
      : mesh_(mesh), sharding_(sharding) {}

  Status Add(NamedGraph named) {
    RIDGE_ASSIGN_OR_RETURN(const Graph form, NormalForm(named.graph));
    std::vector<TensorPair> pairs;
    RIDGE_ASSIGN_OR_RETURN(Layout layout, MakeLayout(form, mesh_, sharding_, &pairs, uses_));
    if (uses_.empty()) TakeUses(form, layout);
    KeepVariables(form, layout);
    const int64_t batch = GiveSamples(form, layout);
    if (batch > 0) KeepRows(form, batch, layout);
    RIDGE_ASSIGN_OR_RETURN(Partitioned parts, Partition(form, layout, mesh_));
    RIDGE_RETURN_IF_ERROR(TakeVariables(form, parts));
    const bool first = result_.steps.empty();
    AddState(StateBytesOf(form, parts), first, result_.state);
    AddState(ZeroStateBytes(form, /*stage=*/0, /*ranks=*/1), first, result_.one_device);
    if (first) result_.pairs = static_cast<int64_t>(pairs.size());
    result_.steps.push_back({named.name, SumCollectives(parts.collectives)});
    named.graph = std::move(parts.local);
    named.may_recompute = false;
    result_.graphs.push_back(std::move(named));
    return Status();
  }

  MeshGraphs Take() { return std::move(result_); }

 private:
  void TakeUses(const Graph& graph, const Layout& layout) {
    for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
      const auto used = layout.use.find(id);
      if (used != layout.use.end()) uses_[graph.value(id).name] = used->second;
    }
  }

  // As the graphs before have them.
  void KeepVariables(const Graph& graph, Layout& layout) const {
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const auto known = splits_.find(graph.values()[v].name);
      if (IsVariable(graph.values()[v]) && known != splits_.end())
        layout.stored[static_cast<ValueId>(v)] = known->second;
    }
  }

  // A rank is given its samples, and all of every other input.  Returns how many samples there are;
  // 0: no rank has a part of them.
  int64_t GiveSamples(const Graph& graph, Layout& layout) const {
    const int data = mesh_.Find(kDataAxis);
    int64_t batch = 0;
    for (const ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
      Split given;
      const auto used = layout.use.find(id);
      if (used != layout.use.end() && used->second.CutBy(data) != nullptr) {
        given.Add({0, data, 1});
        batch = graph.type(id).dims[0];
      }
      layout.stored[id] = std::move(given);
    }
    return batch;
  }

  void KeepRows(const Graph& graph, int64_t batch, Layout& layout) const {
    for (const GraphOutput& output : graph.outputs()) {
      const TensorType& type = graph.type(output.value);
      if (type.rank() > 0 && type.dims[0] == batch)
        layout.outputs[output.name].Add({0, mesh_.Find(kDataAxis), 1});
    }
  }

  Status TakeVariables(const Graph& graph, const Partitioned& parts) {
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const ValueInfo& info = graph.values()[v];
      if (!IsVariable(info)) continue;
      const Split& split = parts.splits[v];
      splits_.emplace(info.name, split);
      // Sums of gradients start with zeros and are in no file.
      if (split.cuts.empty() || info.role == ValueRole::kGradient) continue;
      if (!split.pending.empty())
        return Status(ErrorCode::kUnsupported,
                      graph.name + ": '" + info.name + "' lies as " +
                          SplitText(split, info.type.rank(), mesh_) +
                          ", a sum of which no file has the parts. hint: another --shard");
      result_.variables.emplace(info.name, WholeVariable{info.type, info.init, split});
    }
    return Status();
  }

  const Mesh& mesh_;
  const Sharding& sharding_;
  std::map<std::string, Split> uses_;    // of parameters, in the first graph
  std::map<std::string, Split> splits_;  // by variable
  MeshGraphs result_;
};

}  // namespace

Result<MeshGraphs> PartitionGraphs(std::vector<NamedGraph> graphs, const Mesh& mesh,
                                   const Sharding& sharding) {
  GraphsPartitioner partitioner(mesh, sharding);
  for (NamedGraph& named : graphs) RIDGE_RETURN_IF_ERROR(partitioner.Add(std::move(named)));
  return partitioner.Take();
}

void PlaceOnMesh(const MeshPlace& place, const std::map<std::string, WholeVariable>& variables,
                 Program& program) {
  program.place = place;
  for (PersistentValue& value : program.persistent) {
    const auto whole = variables.find(value.name);
    if (whole != variables.end()) value.whole = whole->second;
  }
}

}  // namespace ridge
