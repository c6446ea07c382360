#include "ridge/pipeline/rank_graphs.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace ridge {
namespace {

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool HasInput(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  return id != kNoValue && graph.value(id).kind == ValueKind::kInput;
}

ValueInfo StateLeaf(const std::string& name, const TensorType& type) {
  ValueInfo info;
  info.name = name;
  info.type = type;
  info.kind = ValueKind::kState;
  return info;
}

// A graph whose inputs and outputs become states.
struct StateForm {
  // The leaf in the place of an input; the input itself stays one.
  std::function<ValueInfo(const ValueInfo& input)> leaf_of;
  // Of an output the states that it is written to, and its name as an output of the step; "": none.
  std::function<std::vector<std::string>(const std::string& value)> states_of;
  std::function<std::string(const std::string& value)> output_of = [](const std::string&) {
    return std::string();
  };
};

Result<Graph> WithStates(const Graph& from, const StateForm& form) {
  Graph to;
  to.name = from.name;
  std::vector<ValueId> here(from.values().size(), kNoValue);
  for (size_t v = 0; v < here.size(); ++v) {
    const ValueInfo& info = from.values()[v];
    if (info.kind == ValueKind::kResult) continue;
    ValueInfo leaf = info.kind == ValueKind::kInput ? form.leaf_of(info) : info;
    const ValueId known = to.FindValue(leaf.name);
    here[v] = known != kNoValue ? known : to.AddLeaf(std::move(leaf));
  }
  std::vector<std::pair<ValueId, ValueId>> writes;  // state, value of `from`
  for (const GraphOutput& output : from.outputs()) {
    const ValueInfo& info = from.value(output.value);
    for (const std::string& state : form.states_of(info.name)) {
      if (to.FindValue(state) == kNoValue)
        writes.emplace_back(to.AddLeaf(StateLeaf(state, info.type)), output.value);
    }
  }
  const auto map = [&](ValueId id) { return id == kNoValue ? id : here[static_cast<size_t>(id)]; };
  for (const Node& node : from.nodes()) {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(map(id));
    RIDGE_ASSIGN_OR_RETURN(const NodeId copy, to.CopyNode(from, node, std::move(inputs)));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      here[static_cast<size_t>(node.outputs[i])] = to.node(copy).outputs[i];
  }
  for (const GraphOutput& output : from.outputs()) {
    const std::string name = form.output_of(from.value(output.value).name);
    if (!name.empty()) to.AddOutput(name, map(output.value));
  }
  for (const GraphUpdate& update : from.updates())
    to.AddUpdate(map(update.variable), map(update.value));
  for (const auto& [state, value] : writes) to.AddUpdate(state, map(value));
  return to;
}

class RankMaker {
 public:
  RankMaker(const PipelineCut& cut, int device) : cut_(cut), device_(device) {}

  Result<RankGraphs> Run() {
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices) {
      RIDGE_RETURN_IF_ERROR(AddMicro(c));
      CountChunk(c);
    }
    RIDGE_RETURN_IF_ERROR(AddBatch());
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices)
      RIDGE_RETURN_IF_ERROR(AddUpdate(c));
    RIDGE_RETURN_IF_ERROR(AddEvaluation());
    return std::move(ranks_);
  }

 private:
  const PipelineStage& Stage(int c) const { return cut_.stages[static_cast<size_t>(c)]; }
  const Graph& micro() const { return cut_.step->micro; }

  void Add(const char* what, int chunk, Graph graph) {
    if (!graph.nodes().empty()) ranks_.graphs.push_back({ChunkStep(what, chunk), std::move(graph)});
  }

  // ---- forward, backward, weights

  ValueInfo LeafOf(int c, const ValueInfo& input) {
    if (!HasInput(micro(), input.name)) return StateLeaf(ChunkState(c, input.name), input.type);
    batch_reads_.insert(input.name);
    return StateLeaf(BatchState(input.name), input.type);
  }

  // Whether a later graph of the chunk reads the value, or it is sent.
  bool IsKept(int c, const std::string& value) const {
    const PipelineStage& stage = Stage(c);
    return HasInput(stage.backward, value) || HasInput(stage.weights, value) ||
           Has(stage.sends_forward, value) || Has(stage.sends_backward, value);
  }

  StateForm FormOf(int c) {
    StateForm form;
    form.leaf_of = [this, c](const ValueInfo& input) { return LeafOf(c, input); };
    form.states_of = [this, c](const std::string& value) {
      return IsKept(c, value) ? std::vector<std::string>{ChunkState(c, value)}
                              : std::vector<std::string>();
    };
    form.output_of = [this, c](const std::string& value) {
      for (const auto& [name, made] : Stage(c).results)
        if (made == value) return kResultPrefix + name;
      return std::string();
    };
    return form;
  }

  Status AddMicro(int c) {
    const StateForm form = FormOf(c);
    const PipelineStage& stage = Stage(c);
    for (const auto& [what, graph] :
         {std::pair{"forward", &stage.forward}, std::pair{"backward", &stage.backward},
          std::pair{"weights", &stage.weights}}) {
      RIDGE_ASSIGN_OR_RETURN(Graph made, WithStates(*graph, form));
      Add(what, c, std::move(made));
    }
    return Status();
  }

  // ---- how many copies there are

  std::vector<Operation> Readers(int c, const std::string& value) const {
    std::vector<Operation> ops;
    const PipelineStage& stage = Stage(c);
    if (HasInput(stage.forward, value)) ops.push_back({PipelineOp::kForward, c});
    if (HasInput(stage.backward, value)) ops.push_back({PipelineOp::kBackward, c});
    if (HasInput(stage.weights, value)) ops.push_back({PipelineOp::kWeights, c});
    if (Has(stage.sends_forward, value)) ops.push_back({PipelineOp::kSendForward, c});
    if (Has(stage.sends_backward, value)) ops.push_back({PipelineOp::kSendBackward, c});
    return ops;
  }

  void Count(int c, const std::string& value, PipelineOp from) {
    ranks_.copies[ChunkState(c, value)] =
        CopiesOf(cut_.schedule, device_, cut_.capacity, {{{from, c}}, Readers(c, value)});
  }

  void CountChunk(int c) {
    const PipelineStage& stage = Stage(c);
    if (c > 0)
      for (const std::string& value : Stage(c - 1).sends_forward)
        Count(c, value, PipelineOp::kReceiveForward);
    if (c + 1 < cut_.schedule.chunks)
      for (const std::string& value : Stage(c + 1).sends_backward)
        Count(c, value, PipelineOp::kReceiveBackward);
    for (const auto& [graph, op] : {std::pair{&stage.forward, PipelineOp::kForward},
                                    std::pair{&stage.backward, PipelineOp::kBackward}}) {
      for (const GraphOutput& output : graph->outputs()) {
        const std::string& value = graph->value(output.value).name;
        if (IsKept(c, value)) Count(c, value, op);
      }
    }
  }

  // A micro batch's inputs are copied before its first graph.
  int64_t BatchCopies(const std::string& input) const {
    StateLife life;
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices) {
      life.from.push_back({PipelineOp::kForward, c});
      for (const Operation& o : Readers(c, input)) life.until.push_back(o);
    }
    return CopiesOf(cut_.schedule, device_, cut_.capacity, life);
  }

  // All inputs are read here, so that a batch has the same slots on all devices.
  Status AddBatch() {
    Graph batch;
    batch.name = micro().name + ".batch";
    std::vector<std::pair<ValueId, ValueId>> writes;
    for (ValueId id : micro().ValuesOfKind(ValueKind::kInput)) {
      const ValueInfo& info = micro().value(id);
      const ValueId input = batch.AddLeaf(info);
      if (!batch_reads_.contains(info.name)) continue;
      writes.emplace_back(batch.AddLeaf(StateLeaf(BatchState(info.name), info.type)), input);
      ranks_.copies[BatchState(info.name)] = BatchCopies(info.name);
    }
    for (const auto& [state, input] : writes) batch.AddUpdate(state, input);
    AddReceived(batch);
    ranks_.graphs.insert(ranks_.graphs.begin(), {"batch", std::move(batch)});
    return Status();
  }

  // What is only passed on is in no graph of the chunk.
  void AddReceived(Graph& to) const {
    const auto add = [&](int c, const std::vector<std::string>& values) {
      for (const std::string& value : values)
        to.AddLeaf(StateLeaf(ChunkState(c, value), micro().type(micro().FindValue(value))));
    };
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices) {
      if (c > 0) add(c, Stage(c - 1).sends_forward);
      if (c + 1 < cut_.schedule.chunks) add(c, Stage(c + 1).sends_backward);
    }
  }

  // ---- update

  // A share that is a variable of this device is read where it lies.
  ValueInfo ShareLeaf(const ValueInfo& input) {
    const Graph& update = cut_.step->update;
    if (HasInput(update, input.name)) return input;
    const ValueInfo& info = update.value(update.FindValue(input.name));
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices) {
      if (Has(Stage(c).shares, input.name) && info.kind != ValueKind::kResult) return info;
    }
    ranks_.copies[ShareState(input.name)] = 1;
    return StateLeaf(ShareState(input.name), input.type);
  }

  Status AddUpdate(int c) {
    StateForm form;
    form.leaf_of = [this](const ValueInfo& input) { return ShareLeaf(input); };
    form.states_of = [this](const std::string& value) {
      const Graph& update = cut_.step->update;
      const bool made = update.producer(update.FindValue(value)) != nullptr;
      if (made) ranks_.copies[ShareState(value)] = 1;
      return made ? std::vector<std::string>{ShareState(value)} : std::vector<std::string>();
    };
    RIDGE_ASSIGN_OR_RETURN(Graph numbers, WithStates(Stage(c).numbers, form));
    Add("numbers", c, std::move(numbers));
    form.states_of = [](const std::string&) { return std::vector<std::string>(); };
    RIDGE_ASSIGN_OR_RETURN(Graph update, WithStates(Stage(c).update, form));
    Add("update", c, std::move(update));
    return Status();
  }

  // ---- evaluation

  // One batch is evaluated at a time.
  ValueInfo EvalLeaf(const std::string& state, const TensorType& type) {
    ranks_.copies[state] = 1;
    return StateLeaf(state, type);
  }

  Status AddEvaluation() {
    if (cut_.eval == nullptr) return Status();
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices) {
      const EvalStage& stage = cut_.eval_stages[static_cast<size_t>(c)];
      StateForm form;
      form.leaf_of = [this, c](const ValueInfo& input) {
        return HasInput(*cut_.eval, input.name) ? input
                                                : EvalLeaf(EvalState(c, input.name), input.type);
      };
      form.states_of = [&](const std::string& value) {
        std::vector<std::string> states;
        if (Has(stage.sends, value)) states.push_back(EvalState(c, value));
        for (const auto& [name, made] : stage.outputs)
          if (made == value) states.push_back(EvalOutputState(name));
        for (const std::string& state : states) ranks_.copies[state] = 1;
        return states;
      };
      RIDGE_ASSIGN_OR_RETURN(Graph graph, WithStates(stage.graph, form));
      Add("eval", c, std::move(graph));
    }
    Graph all;  // with all inputs, as `batch`
    all.name = cut_.eval->name;
    for (ValueId id : cut_.eval->ValuesOfKind(ValueKind::kInput)) all.AddLeaf(cut_.eval->value(id));
    for (int c = device_; c < cut_.schedule.chunks; c += cut_.schedule.devices) {
      if (c == 0) continue;
      for (const std::string& value : cut_.eval_stages[static_cast<size_t>(c) - 1].sends)
        all.AddLeaf(EvalLeaf(EvalState(c, value), cut_.eval->type(cut_.eval->FindValue(value))));
    }
    for (const GraphOutput& output : cut_.eval->outputs())
      all.AddOutput(output.name, all.AddLeaf(EvalLeaf(EvalOutputState(output.name),
                                                      cut_.eval->type(output.value))));
    ranks_.graphs.push_back({"eval", std::move(all)});
    return Status();
  }

  const PipelineCut& cut_;
  const int device_;
  RankGraphs ranks_;
  std::set<std::string> batch_reads_;  // inputs
};

// Every device that has a stage whose update reads the share, but for the one that has it.
std::vector<int> DevicesThatRead(const PipelineCut& cut, const std::string& share, int from) {
  std::set<int> devices;
  for (size_t s = 0; s < cut.stages.size(); ++s) {
    const int device = cut.schedule.DeviceOf(static_cast<int>(s));
    if (device != from && HasInput(cut.stages[s].update, share)) devices.insert(device);
  }
  return {devices.begin(), devices.end()};
}

void AddUpdateMessages(const PipelineCut& cut, PipelineRole& role) {
  const Graph &update = cut.step->update, &micro = cut.step->micro;
  std::map<std::string, int> home;  // of tied weights
  for (size_t s = 0; s < cut.stages.size(); ++s) {
    const int from = cut.schedule.DeviceOf(static_cast<int>(s));
    for (const std::string& share : cut.stages[s].shares) {
      const ValueId id = update.FindValue(share);
      const bool variable = update.producer(id) == nullptr;
      UpdateMessage message = {variable ? share : ShareState(share), ShareState(share), from,
                               DevicesThatRead(cut, share, from), update.type(id).bytes()};
      if (!message.to.empty()) role.shares.push_back(std::move(message));
    }
    for (ValueId id : cut.stages[s].update.ValuesOfKind(ValueKind::kParameter))
      home[cut.stages[s].update.value(id).name] = from;
  }
  for (size_t s = 0; s < cut.stages.size(); ++s) {
    for (const TiedCopy& copy : cut.stages[s].copies)
      role.copies.push_back({copy.of,
                             copy.variable,
                             home.at(copy.of),
                             {cut.schedule.DeviceOf(static_cast<int>(s))},
                             micro.type(micro.FindValue(copy.variable)).bytes()});
  }
}

}  // namespace

Result<RankGraphs> GraphsOfRank(const PipelineCut& cut, int device) {
  return RankMaker(cut, device).Run();
}

PipelineRole RoleOf(const PipelineCut& cut, int device) {
  PipelineRole role;
  role.device = device;
  role.schedule = cut.schedule;
  role.capacity = cut.capacity;
  for (size_t s = 0; s < cut.stages.size(); ++s) {
    const PipelineStage& stage = cut.stages[s];
    PipelineRole::Chunk chunk;
    chunk.sends_forward = stage.sends_forward;
    chunk.sends_backward = stage.sends_backward;
    chunk.forward_bytes = stage.forward_bytes;
    chunk.backward_bytes = stage.backward_bytes;
    if (cut.eval != nullptr) {
      chunk.sends_eval = cut.eval_stages[s].sends;
      for (const auto& [name, value] : cut.eval_stages[s].outputs)
        role.eval_outputs.push_back({name, cut.schedule.DeviceOf(static_cast<int>(s))});
    }
    role.chunks.push_back(std::move(chunk));
  }
  AddUpdateMessages(cut, role);
  return role;
}

}  // namespace ridge
