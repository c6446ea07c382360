#include "ridge/train/job/served_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/learn/cached_step.h"
#include "ridge/learn/narrow_form.h"
#include "ridge/learn/training_graph.h"
#include "ridge/models/config/model_folder.h"
#include "ridge/models/model.h"
#include "ridge/plan/total.h"
#include "ridge/train/job/job.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

constexpr const char* kContext = "context";  // of built-in language models: tokens of a sample
constexpr const char* kTokens = "tokens";
constexpr const char* kLogits = "logits";

// ---- the model

// The built-in spec that the model, a folder or a run stands for; of files their name.
Result<std::string> SpecOf(const std::string& model) {
  if (Run::Exists(model)) {
    RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
    return IsOnnxFile(run.ModelSource()) ? model : run.options().model;
  }
  if (!IsModelFolder(model)) return model;
  RIDGE_ASSIGN_OR_RETURN(const ModelFolder folder, OpenModelFolder(model));
  return folder.spec;
}

// The tokens that a built-in language model has; none for other models.
std::optional<int64_t> ContextOf(const std::string& spec) {
  const Result<ModelSpec> parsed = ParseModelSpec(spec);
  if (!parsed.ok() || FindBuiltinModel(parsed->name) == nullptr) return std::nullopt;
  const Result<ModelArguments> arguments =
      ModelArguments::Check(*parsed, ParametersOf(parsed->name));
  if (!arguments.ok()) return std::nullopt;
  for (const ModelParameter& parameter : ParametersOf(parsed->name)) {
    if (parameter.name == kContext) return (*arguments)[kContext];
  }
  return std::nullopt;
}

// The spec with so many tokens a sample.
std::string WithContext(const std::string& spec, int64_t tokens) {
  const Result<ModelSpec> parsed = ParseModelSpec(spec);
  RIDGE_CHECK(parsed.ok(), "a context is that of a built-in model");
  ModelSpec with_context = {parsed->name, {{kContext, std::to_string(tokens)}}};
  for (const auto& argument : parsed->arguments) {
    if (argument.first != kContext) with_context.arguments.push_back(argument);
  }
  return ModelSpecText(with_context);
}

// The inputs that only training reads.
std::vector<std::string> TargetInputs(const Graph& forward) {
  const Result<ForwardInfo> facts = InspectForward(forward);
  if (!facts.ok()) return {};  // it has no loss, and so no targets
  std::vector<ValueId> targets = {facts->label, facts->target};
  if (facts->ctc) {
    targets.push_back(facts->ctc->targets);
    targets.push_back(facts->ctc->target_lengths);
  }
  if (facts->detection) {
    targets.push_back(facts->detection->boxes);
    targets.push_back(facts->detection->classes);
  }
  std::vector<std::string> names;
  for (const ValueId id : targets) {
    if (id != kNoValue) names.push_back(forward.value(id).name);
  }
  return names;
}

struct Loading {
  DType stored = DType::kF32;
  const std::map<std::string, int64_t>& dims;
};

Result<Graph> LoadInference(const std::string& model, int64_t batch, const Loading& loading) {
  ModelRequest request = {.model = model, .batch = batch, .dims = loading.dims};
  request.training = false;
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, LoadModel(request));
  RIDGE_ASSIGN_OR_RETURN(NamedGraph infer, BuildInferenceGraph(forward, TargetInputs(forward)));
  if (loading.stored == DType::kF32) return std::move(infer.graph);
  return NarrowForm(infer.graph, loading.stored);
}

int64_t VariableBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kState)
      bytes += value.type.bytes();
  }
  return bytes;
}

// ---- language models

Status CheckTokens(const ServedModel& model, const std::optional<int64_t>& context) {
  if (!context) {
    return InvalidArgument(
        fmt::format("{} writes no tokens. hint: prompt, output and sequences are of built-in "
                    "language models, such as llama, gpt2 and whisper_tiny",
                    model.model));
  }
  const int64_t needed = model.tokens->prompt + model.tokens->output;
  if (needed <= *context) return Status();
  return InvalidArgument(
      fmt::format("{} has a context of {} tokens; a prompt of {} and an output of "
                  "{} need {}",
                  model.model, *context, model.tokens->prompt, model.tokens->output, needed));
}

Result<ServedGraphs> LoadLanguageModel(const ServedModel& model, const std::string& spec,
                                       const Loading& loading) {
  const TokenCounts& tokens = *model.tokens;
  ServedGraphs graphs;
  RIDGE_ASSIGN_OR_RETURN(const Graph whole, LoadInference(spec, /*batch=*/1, loading));
  graphs.weight_bytes = VariableBytes(whole);
  RIDGE_ASSIGN_OR_RETURN(graphs.infer.graph,
                         LoadInference(WithContext(spec, tokens.prompt), /*batch=*/1, loading));
  RIDGE_ASSIGN_OR_RETURN(const Graph one,
                         LoadInference(WithContext(spec, 1), model.batch, loading));
  const auto step = [&](int64_t length) -> Result<NamedGraph> {
    RIDGE_ASSIGN_OR_RETURN(Graph graph, CachedStep(one, kTokens, kLogits, length));
    return NamedGraph{"token", std::move(graph)};
  };
  RIDGE_ASSIGN_OR_RETURN(graphs.first_token, step(tokens.prompt));
  RIDGE_ASSIGN_OR_RETURN(graphs.last_token, step(tokens.prompt + tokens.output));
  return graphs;
}

// ---- plans

bool IsCache(const PersistentValue& value) {
  return value.name.starts_with("cache.") || value.name.starts_with("once.");
}

// A step that was planned alone.
struct PlannedStep {
  double seconds = 0;
  int64_t cache_bytes = 0, scratch_bytes = 0, runtime_bytes = 0;
};

Result<PlannedStep> PlanStep(const std::string& model, const NamedGraph& graph, DType operands,
                             const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const Program program,
                         PlanGraphs(model, {graph}, /*passes=*/"", operands, machine));
  PlannedStep step;
  step.seconds = PlannedSeconds(program.steps[0]);
  step.scratch_bytes = program.arena_bytes;
  for (const PersistentValue& value : program.persistent) {
    if (value.kind != ValueKind::kInput) step.scratch_bytes -= value.size_bytes;
    if (IsCache(value)) step.cache_bytes += value.size_bytes;
  }
  step.runtime_bytes = ProfiledRuntimeBytes(machine.measured().facts(), program);
  return step;
}

}  // namespace

std::optional<TokenCounts> UsualTokens(const std::string& model) {
  const Result<std::string> spec = SpecOf(model);
  if (!spec.ok()) return std::nullopt;
  const std::optional<int64_t> context = ContextOf(*spec);
  if (!context || *context < 2) return std::nullopt;
  constexpr int64_t kPrompt = 512, kOutput = 128;
  return TokenCounts{std::min(kPrompt, *context / 2), std::min(kOutput, *context / 2)};
}

Result<ServedGraphs> LoadServedGraphs(const ServedModel& model, DType stored,
                                      const std::map<std::string, int64_t>& dims) {
  RIDGE_ASSIGN_OR_RETURN(const std::string spec, SpecOf(model.model));
  const Loading loading = {stored, dims};
  ServedGraphs graphs;
  if (model.tokens) {
    RIDGE_RETURN_IF_ERROR(CheckTokens(model, ContextOf(spec)));
    RIDGE_ASSIGN_OR_RETURN(graphs, LoadLanguageModel(model, spec, loading));
  } else {
    RIDGE_ASSIGN_OR_RETURN(graphs.infer.graph, LoadInference(model.model, model.batch, loading));
    graphs.weight_bytes = VariableBytes(graphs.infer.graph);
  }
  graphs.name = model.model;
  graphs.infer.name = "infer";
  return graphs;
}

Result<ModelCost> PlanServed(const ServedGraphs& graphs, const std::string& precision,
                             const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(precision, machine));
  RIDGE_ASSIGN_OR_RETURN(const PlannedStep infer,
                         PlanStep(graphs.name, graphs.infer, operands, machine));
  ModelCost cost;
  cost.precision = precision;
  cost.low = machine.software.low;
  cost.high = machine.software.high;
  cost.run_s = infer.seconds;
  cost.weight_bytes = graphs.weight_bytes;
  cost.scratch_bytes = infer.scratch_bytes;
  cost.runtime_bytes = infer.runtime_bytes;
  if (!graphs.last_token) return cost;
  RIDGE_ASSIGN_OR_RETURN(const PlannedStep first,
                         PlanStep(graphs.name, *graphs.first_token, operands, machine));
  RIDGE_ASSIGN_OR_RETURN(const PlannedStep last,
                         PlanStep(graphs.name, *graphs.last_token, operands, machine));
  cost.prefill_s = infer.seconds;
  // What a step reads of the caches grows by a token a step.
  cost.token_s = (first.seconds + last.seconds) / 2;
  cost.cache_bytes = last.cache_bytes;
  cost.scratch_bytes = std::max(infer.scratch_bytes, last.scratch_bytes);
  cost.runtime_bytes = std::max(infer.runtime_bytes, last.runtime_bytes);
  return cost;
}

}  // namespace ridge
