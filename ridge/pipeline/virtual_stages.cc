#include "ridge/pipeline/virtual_stages.h"

#include <fmt/format.h>

#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

Status NotThere(const Graph& graph, const std::string& name) {
  return Status(ErrorCode::kInternal, fmt::format("{}: '{}' is not there", graph.name, name));
}

}  // namespace

Result<VirtualStages> VirtualStages::Create(std::vector<PipelineStage> stages,
                                            const PipelineSchedule& schedule, uint64_t seed) {
  RIDGE_CHECK(stages.size() == static_cast<size_t>(schedule.chunks), "a stage is a chunk");
  VirtualStages virtual_stages(std::move(stages), schedule);
  for (size_t s = 0; s < virtual_stages.stages_.size(); ++s) {
    const PipelineStage& stage = virtual_stages.stages_[s];
    for (const Graph* graph :
         {&stage.forward, &stage.backward, &stage.weights, &stage.numbers, &stage.update}) {
      RIDGE_RETURN_IF_ERROR(
          virtual_stages.AddVariables(*graph, virtual_stages.variables_[s], seed));
    }
  }
  virtual_stages.CopyTied();
  return virtual_stages;
}

void VirtualStages::CopyTied() {
  const NamedNumbers all = Variables();
  for (size_t s = 0; s < stages_.size(); ++s)
    for (const TiedCopy& copy : stages_[s].copies) variables_[s][copy.variable] = all.at(copy.of);
}

Status VirtualStages::AddVariables(const Graph& graph, NamedNumbers& variables, uint64_t seed) {
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : graph.ValuesOfKind(kind)) {
      RIDGE_ASSIGN_OR_RETURN(const Tensor start, InitialValue(graph.value(id), seed));
      variables.try_emplace(graph.value(id).name, NumbersOf(start));
    }
  }
  return Status();
}

NamedNumbers VirtualStages::Variables() const {
  NamedNumbers all;
  for (const NamedNumbers& own : variables_) all.insert(own.begin(), own.end());
  return all;
}

// Reads inputs of the batch or of `values`; adds its outputs to `values`.
Status VirtualStages::RunGraph(const Graph& graph, NamedNumbers& variables,
                               const NamedNumbers& inputs, NamedNumbers& values) {
  std::vector<Numbers> all(graph.values().size());
  for (size_t v = 0; v < all.size(); ++v) {
    const ValueInfo& info = graph.values()[v];
    if (info.kind == ValueKind::kResult) continue;
    if (info.kind == ValueKind::kConstant) {
      all[v] = NumbersOf(info.constant);
      continue;
    }
    const bool is_input = info.kind == ValueKind::kInput;
    const NamedNumbers& source = !is_input                    ? variables
                                 : values.contains(info.name) ? values
                                                              : inputs;
    const auto found = source.find(info.name);
    if (found == source.end()) return NotThere(graph, info.name);
    all[v] = found->second;
  }
  for (const Node& node : graph.nodes())
    RunOnNumbers(graph, node, [&](ValueId id) -> Numbers& { return all[static_cast<size_t>(id)]; });
  for (const GraphOutput& output : graph.outputs())
    values[output.name] = all[static_cast<size_t>(output.value)];
  for (const GraphUpdate& update : graph.updates())
    variables[graph.value(update.variable).name] = all[static_cast<size_t>(update.value)];
  return Status();
}

Result<bool> VirtualStages::Run(const Operation& o, const NamedNumbers& inputs) {
  const auto s = static_cast<size_t>(o.chunk);
  const PipelineStage& stage = stages_[s];
  const auto graph = [&]() -> const Graph& {
    return o.op == PipelineOp::kForward    ? stage.forward
           : o.op == PipelineOp::kBackward ? stage.backward
                                           : stage.weights;
  };
  if (o.is_compute()) {
    if (o.op != PipelineOp::kWeights) {  // from a chunk of the same device nothing is sent
      const int from = o.chunk + (o.op == PipelineOp::kForward ? -1 : 1);
      if (from >= 0 && from < schedule_.chunks &&
          schedule_.DeviceOf(from) == schedule_.DeviceOf(o.chunk)) {
        const PipelineStage& other = stages_[static_cast<size_t>(from)];
        for (const std::string& name :
             o.op == PipelineOp::kForward ? other.sends_forward : other.sends_backward)
          Kept(o)[name] = kept_.at({from, o.micro}).at(name);
      }
    }
    RIDGE_RETURN_IF_ERROR(RunGraph(graph(), variables_[s], inputs, Kept(o)));
    return true;
  }
  const bool forward = o.op == PipelineOp::kSendForward || o.op == PipelineOp::kReceiveForward;
  if (o.is_send()) {
    NamedNumbers& message = messages_[o];
    for (const std::string& name : forward ? stage.sends_forward : stage.sends_backward) {
      const auto found = Kept(o).find(name);
      if (found == Kept(o).end()) return NotThere(graph(), name);
      message.insert(*found);
    }
    return true;
  }
  const Operation send = {forward ? PipelineOp::kSendForward : PipelineOp::kSendBackward,
                          PeerChunk(o), o.micro};
  const auto found = messages_.find(send);
  if (found == messages_.end()) return false;
  Kept(o).merge(found->second);
  messages_.erase(found);
  return true;
}

Result<std::vector<NamedNumbers>> VirtualStages::Step(const std::vector<NamedNumbers>& inputs,
                                                      const NamedNumbers& update_inputs) {
  kept_.clear();
  messages_.clear();
  std::vector<size_t> at(schedule_.ops.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t d = 0; d < at.size(); ++d) {
      for (bool ran = true; ran && at[d] < schedule_.ops[d].size(); moved |= ran) {
        const Operation& o = schedule_.ops[d][at[d]];
        RIDGE_ASSIGN_OR_RETURN(ran, Run(o, inputs[static_cast<size_t>(o.micro)]));
        if (ran) ++at[d];
      }
    }
  }
  std::vector<NamedNumbers> outputs(static_cast<size_t>(schedule_.micros));
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < schedule_.ops[d].size())
      return Status(ErrorCode::kInternal, fmt::format("device {} waits for ever", d));
  }
  for (size_t s = 0; s < stages_.size(); ++s) {
    for (int i = 0; i < schedule_.micros; ++i) {
      const NamedNumbers& kept = kept_.at({static_cast<int>(s), i});
      for (const auto& [name, value] : stages_[s].results)
        if (kept.contains(value)) outputs[static_cast<size_t>(i)][name] = kept.at(value);
    }
  }
  RIDGE_ASSIGN_OR_RETURN(NamedNumbers updated, Update(update_inputs));
  outputs.push_back(std::move(updated));
  return outputs;
}

Result<NamedNumbers> VirtualStages::Update(const NamedNumbers& inputs) {
  NamedNumbers shares, outputs;
  for (size_t s = 0; s < stages_.size(); ++s) {
    NamedNumbers own;
    RIDGE_RETURN_IF_ERROR(RunGraph(stages_[s].numbers, variables_[s], inputs, own));
    shares.merge(own);
  }
  for (size_t s = 0; s < stages_.size(); ++s) {
    NamedNumbers values = shares;
    RIDGE_RETURN_IF_ERROR(RunGraph(stages_[s].update, variables_[s], inputs, values));
    for (const auto& [name, value] : stages_[s].results)
      if (stages_[s].update.FindOutput(value) != kNoValue) outputs[name] = values.at(value);
  }
  CopyTied();
  return outputs;
}

}  // namespace ridge
