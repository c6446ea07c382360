#include "tests/crossing/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ridge/graph/batch_axis.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/plan/search/rewrite_graphs.h"
#include "ridge/train/job/scalar_inputs.h"
#include "ridge/train/job/slicing.h"

namespace ridge::crossing {
namespace {

constexpr int64_t kUpdates = 2;
constexpr uint64_t kSeed = 3;
constexpr double kRate = 0.05;
constexpr double kEpsilon = 1e-3;   // Adam makes steps of the rounding of gradients that are 0
constexpr double kSmallest = 0.05;  // below, rounding of what cancels is all that there is

// --- graphs --------------------------------------------------------------------------------------

Result<Graph> ForOneSlice(const Training& training, int64_t slices) {
  Graph graph = training.forward;
  graph.ClearOutputs();
  graph.AddOutput("loss", training.facts.loss);
  if (training.facts.logits != kNoValue) graph.AddOutput("logits", training.facts.logits);
  if (slices == 1) return graph;
  RIDGE_ASSIGN_OR_RETURN(
      const BatchAxes axes,
      FindBatchAxes(training.forward, {training.facts.loss}, training.facts.data_inputs));
  return SliceGraph(graph, axes, slices);
}

TrainingGraphOptions OptionsOf(const Setting& setting) {
  TrainingGraphOptions options;
  const bool momentum = setting.optimizer == "momentum";
  options.optimizer.name = momentum ? "sgd" : setting.optimizer;
  if (momentum) options.optimizer.momentum = 0.9;
  options.optimizer.state = setting.state;
  options.optimizer.least_coded = 1;
  if (setting.optimizer.starts_with("adam")) options.optimizer.epsilon = kEpsilon;
  options.accumulate = setting.accumulate;
  // Small enough to be tame, and another one in each update.
  if (setting.scaled) options.loss_scale = LossScaleOptions{.scale = 64, .growth_interval = 1};
  options.slices = setting.slices;
  if (setting.tree) options.share = SliceShare{setting.slices, 0, 1};
  return options;
}

// --- data ----------------------------------------------------------------------------------------

// One batch, part `part` of update `update`.
std::map<std::string, Tensor> Batch(const Training& training, int64_t update, int64_t part) {
  std::mt19937 draw(static_cast<std::mt19937::result_type>(7 + 10 * update + part));
  std::map<std::string, Tensor> batch;
  for (const ValueId id : training.facts.data_inputs) {
    const ValueInfo& input = training.forward.value(id);
    Tensor data(input.type);
    for (int64_t i = 0; i < data.elements(); ++i) {
      const auto drawn = static_cast<double>(draw() % 3000);
      const double value = IsFloat(input.type.dtype) ? drawn / 1500 - 1 : std::fmod(drawn, 2);
      StoreFromDouble(input.type.dtype, data.mutable_data(), i, value);
    }
    batch[input.name] = data;
  }
  return batch;
}

std::vector<double> Numbers(const TensorType& type, const void* data) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < type.elements(); ++i)
    numbers.push_back(LoadAsDouble(type.dtype, data, i));
  return numbers;
}

std::vector<double> Numbers(const Tensor& tensor) { return Numbers(tensor.type(), tensor.data()); }

// --- the interpreter -----------------------------------------------------------------------------

// Sums over the slices, and what follows from them.
std::vector<bool> FollowsFromSums(const NamedGraph& named) {
  std::vector<bool> follows(named.graph.values().size(), false);
  for (const std::string& name : named.accumulators) {
    if (const ValueId id = named.graph.FindValue(name); id != kNoValue)
      follows[static_cast<size_t>(id)] = true;
  }
  for (const Node& node : named.graph.nodes()) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id != kNoValue && follows[static_cast<size_t>(id)];
    });
    for (const ValueId id : node.outputs) follows[static_cast<size_t>(id)] = any;
  }
  return follows;
}

class Interpreter {
 public:
  explicit Interpreter(const Training& training) : training_(training) {}

  Result<Left> Run() {
    for (int64_t update = 0; update < kUpdates; ++update) {
      for (const NamedGraph& named : training_.graphs) {
        const int64_t parts = named.name == "micro" ? training_.accumulate : 1;
        for (int64_t part = 0; part < parts; ++part)
          RIDGE_RETURN_IF_ERROR(RunStep(named, update, part));
      }
    }
    for (const auto& [name, tensor] : variables_) left_[name] = Numbers(tensor);
    return std::move(left_);
  }

 private:
  Status RunStep(const NamedGraph& named, int64_t update, int64_t part) {
    const std::vector<bool> follows = FollowsFromSums(named);
    for (const ValueId id : named.graph.ValuesOfKind(ValueKind::kState)) Start(named, id, true);
    for (const ValueId id : named.graph.ValuesOfKind(ValueKind::kParameter))
      Start(named, id, false);
    if (named.share) return RunTree(named, follows, update, part);
    for (int64_t slice = 0; slice < named.slices; ++slice) {
      RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                             EvaluateGraph(named.graph, Given(named, update, part, slice), kSeed));
      const bool last = slice + 1 == named.slices;
      for (const GraphUpdate& change : named.graph.updates()) {
        const std::string& name = named.graph.value(change.variable).name;
        const bool once = follows[static_cast<size_t>(change.value)] && !IsSum(named, name);
        if (last || !once) variables_[name] = values[static_cast<size_t>(change.value)];
      }
      for (const GraphOutput& output : named.graph.outputs()) {
        left_[fmt::format("{} {} {} {}", update, part, named.name, output.name)] =
            Numbers(values[static_cast<size_t>(output.value)]);
      }
    }
    return Status();
  }

  // Every slice by itself, then its addends by the tree, then what follows from the sums.
  Status RunTree(const NamedGraph& named, const std::vector<bool>& follows, int64_t update,
                 int64_t part) {
    std::vector<std::vector<Tensor>> slices;
    for (int64_t slice = 0; slice < named.slices; ++slice) {
      RIDGE_ASSIGN_OR_RETURN(std::vector<Tensor> values,
                             EvaluateGraph(named.graph, Given(named, update, part, slice), kSeed));
      for (const GraphUpdate& change : named.graph.updates()) {
        const std::string& name = named.graph.value(change.variable).name;
        const auto value = static_cast<size_t>(change.value);
        if (!follows[value] && !IsSum(named, name)) variables_[name] = values[value];
      }
      slices.push_back(std::move(values));
    }
    for (const GraphUpdate& change : named.graph.updates()) {
      const std::string& name = named.graph.value(change.variable).name;
      if (IsSum(named, name)) variables_[name] = TreeSum(slices, change.value, {0, named.slices});
    }
    RIDGE_ASSIGN_OR_RETURN(
        const std::vector<Tensor> values,
        EvaluateGraph(named.graph, Given(named, update, part, named.slices - 1), kSeed));
    for (const GraphUpdate& change : named.graph.updates()) {
      const auto value = static_cast<size_t>(change.value);
      if (follows[value]) variables_[named.graph.value(change.variable).name] = values[value];
    }
    for (const GraphOutput& output : named.graph.outputs()) {
      const auto value = static_cast<size_t>(output.value);
      left_[fmt::format("{} {} {} {}", update, part, named.name, output.name)] =
          Numbers(follows[value] ? values[value] : slices.back()[value]);
    }
    return Status();
  }

  static Tensor TreeSum(const std::vector<std::vector<Tensor>>& slices, ValueId value,
                        const SliceRange& node) {
    if (node.count() == 1)
      return slices[static_cast<size_t>(node.first)][static_cast<size_t>(value)];
    const int64_t cut = CutOf(node);
    const Tensor left = TreeSum(slices, value, {node.first, cut});
    const Tensor right = TreeSum(slices, value, {cut, node.end});
    Tensor sum(left.type());
    const DType dtype = left.type().dtype;
    for (int64_t i = 0; i < sum.elements(); ++i) {
      StoreFromDouble(dtype, sum.mutable_data(), i,
                      LoadAsDouble(dtype, left.data(), i) + LoadAsDouble(dtype, right.data(), i));
    }
    return sum;
  }

  static bool IsSum(const NamedGraph& named, const std::string& name) {
    return std::find(named.accumulators.begin(), named.accumulators.end(), name) !=
           named.accumulators.end();
  }

  void Start(const NamedGraph& named, ValueId id, bool state) {
    const ValueInfo& info = named.graph.value(id);
    if (state && IsSum(named, info.name)) {
      variables_[info.name] = Tensor(info.type);
    } else if (!variables_.contains(info.name)) {
      variables_[info.name] = *InitialValue(info, kSeed);
    }
  }

  std::map<std::string, Tensor> Given(const NamedGraph& named, int64_t update, int64_t part,
                                      int64_t slice) const {
    std::map<std::string, Tensor> given = variables_;
    const std::map<std::string, Tensor> batch = Batch(training_, update, part);
    for (const ValueId id : named.graph.ValuesOfKind(ValueKind::kInput)) {
      const ValueInfo& info = named.graph.value(id);
      given[info.name] = InputOf(info, batch, named.slices, update, part, slice);
    }
    return given;
  }

  Tensor InputOf(const ValueInfo& info, const std::map<std::string, Tensor>& batch, int64_t slices,
                 int64_t update, int64_t part, int64_t slice) const {
    const std::string& name = info.name;
    if (name == kLrInput) return Tensor::Scalar(info.type.dtype, kRate);
    if (name == kStepInput) return Tensor::Scalar(DType::kI64, static_cast<double>(update + 1));
    if (name == kRoundingInput) {
      const int64_t row[] = {5, update};
      return Tensor::FromInts({2}, row);
    }
    if (name == kRngInput) {
      const int64_t samples = training_.facts.batch;
      const int64_t row[] = {5, update, part * samples + slice * (samples / slices)};
      return Tensor::FromInts({3}, row);
    }
    if (IsWholeInput(name)) return batch.at(name.substr(std::strlen(kWholePrefix)));
    const Tensor& whole = batch.at(name);
    Tensor mine(info.type);
    std::memcpy(mine.mutable_data(),
                static_cast<const std::byte*>(whole.data()) + slice * info.type.bytes(),
                static_cast<size_t>(info.type.bytes()));
    return mine;
  }

  const Training& training_;
  std::map<std::string, Tensor> variables_;
  Left left_;
};

// --- the executor --------------------------------------------------------------------------------

void Count(const Program& program, Uses& uses) {
  for (const PersistentValue& value : program.persistent)
    uses.packed += value.layout == kRowMajor ? 0 : 1;
  for (const StepPlan& step : program.steps) {
    std::vector<bool> written(step.values.size(), false);
    for (const NodePlace& place : NodePlaces(step)) uses.in_sections += place.parallel >= 0 ? 1 : 0;
    for (const PlannedNode& node : step.nodes) {
      uses.copies += node.def == nullptr ? 1 : 0;
      for (const int value : node.outputs) written[static_cast<size_t>(value)] = true;
    }
    for (size_t v = 0; v < step.values.size(); ++v) {
      uses.in_place += step.values[v].shares_with >= 0 && written[v] ? 1 : 0;
      uses.first_slices += FirstWrittenIn(step, static_cast<int>(v)) >= 0 ? 1 : 0;
    }
  }
}

Status RunUpdates(const Training& training, Executor& executor, Left& left) {
  ScalarInputs scalars(executor, training.lr_dtype, training.facts.batch);
  int64_t turn = 0;
  for (int64_t update = 0; update < kUpdates; ++update) {
    for (const NamedGraph& named : training.graphs) {
      const int64_t parts = named.name == "micro" ? training.accumulate : 1;
      const int step = executor.StepIndex(named.name);
      for (int64_t part = 0; part < parts; ++part) {
        const int slot = static_cast<int>(turn++ % 2);
        for (const auto& [name, data] : Batch(training, update, part)) {
          for (const std::string& input : {name, kWholePrefix + name}) {
            if (void* to = executor.transfers().Input(input, slot); to != nullptr)
              std::memcpy(to, data.data(), static_cast<size_t>(data.bytes()));
          }
        }
        scalars.Write(slot, kRate, update, {5, part * training.facts.batch});
        RIDGE_RETURN_IF_ERROR(executor.Run(step, slot));
        for (const GraphOutput& output : named.graph.outputs()) {
          RIDGE_ASSIGN_OR_RETURN(const void* data, executor.transfers().Output(step, output.name));
          left[fmt::format("{} {} {} {}", update, part, named.name, output.name)] =
              Numbers(executor.OutputType(step, output.name), data);
        }
      }
    }
  }
  return Status();
}

}  // namespace

Result<Training> BuildTraining(const std::string& text, const Setting& setting,
                               const Machine& machine) {
  Training training;
  RIDGE_ASSIGN_OR_RETURN(training.forward, ParseGraph(text, "net.ridge"));
  RIDGE_ASSIGN_OR_RETURN(training.facts, InspectForward(training.forward));
  const DType loss = training.forward.type(training.facts.loss).dtype;
  training.lr_dtype = loss == DType::kF64 ? DType::kF64 : DType::kF32;
  training.accumulate = setting.accumulate;
  RIDGE_ASSIGN_OR_RETURN(const Graph slice, ForOneSlice(training, setting.slices));
  const std::string passes = setting.passes ? "" : "none";
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(passes));
  RIDGE_ASSIGN_OR_RETURN(const Graph simple,
                         RunPasses(slice, ForwardPasses(selection), machine.backend->rules()));
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs,
                         BuildTrainingGraphs(simple, OptionsOf(setting)));
  RIDGE_ASSIGN_OR_RETURN(RewrittenGraphs rewritten,
                         RewriteGraphs(std::move(graphs),
                                       {.passes = selection,
                                        .limits = LimitsOf(*ParseRecompute(setting.recompute)),
                                        .loss_chunks = setting.loss_chunks},
                                       *machine.backend));
  training.graphs = std::move(rewritten.graphs);
  training.recomputed = rewritten.recomputed;
  const auto& logits = rewritten.logits;
  if (setting.loss_chunks > 1 && logits) training.chunked = 1;
  return training;
}

std::string Uses::Missing() const {
  const std::pair<const char*, int64_t> all[] = {{"section", in_sections},
                                                 {"packed variable", packed},
                                                 {"copy", copies},
                                                 {"result in place", in_place},
                                                 {"first slice", first_slices},
                                                 {"recomputed value", recomputed},
                                                 {"logits in chunks", chunked}};
  for (const auto& [what, count] : all) {
    if (count == 0) return what;
  }
  return "";
}

Result<Left> Interpret(const Training& training) { return Interpreter(training).Run(); }

// Sums of fewer slices than all, which mean nothing after a step and are as large as layouts want.
bool HasPartialSums(const Program& program, size_t value) {
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const StepPlan& step) {
    return step.tree && step.tree->further == static_cast<int>(value);
  });
}

Result<Left> Execute(const Training& training, const Setting& setting, const Machine& machine,
                     Uses& uses) {
  const PlanOptions options = {.in_place = setting.in_place,
                               .layout = setting.layout,
                               .inter_op = {.streams = setting.lanes, .always = true}};
  RIDGE_ASSIGN_OR_RETURN(Program program, PlanProgram("net", training.graphs, *machine.backend,
                                                      machine.measured(), options));
  Count(program, uses);
  uses.recomputed += training.recomputed;
  uses.chunked += training.chunked;
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), *machine.backend));
  RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(kSeed));
  Left left;
  RIDGE_RETURN_IF_ERROR(RunUpdates(training, *executor, left));
  const std::vector<PersistentValue>& persistent = executor->program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    if (persistent[i].kind == ValueKind::kInput || HasPartialSums(executor->program(), i)) continue;
    RIDGE_ASSIGN_OR_RETURN(const void* data, executor->transfers().Read(i));
    left[persistent[i].name] = Numbers(persistent[i].type, data);
  }
  return left;
}

std::string Difference(const Left& want, const Left& have, double bound) {
  for (const auto& [name, values] : want) {
    const auto found = have.find(name);
    if (found == have.end() || found->second.size() != values.size())
      return "'" + name + "' is missing";
    double largest = kSmallest;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < values.size(); ++i) {
      const double is = found->second[i], should = values[i];
      if (std::abs(is - should) <= bound * largest || (std::isnan(is) && std::isnan(should)))
        continue;
      return fmt::format("'{}'[{}] is {}, should be {}", name, i, is, should);
    }
  }
  return "";
}

bool IsTame(const Left& left) {
  for (const auto& [name, values] : left) {
    for (const double value : values) {
      if (!(std::abs(value) < 1e4)) return false;
    }
  }
  return true;
}

}  // namespace ridge::crossing
