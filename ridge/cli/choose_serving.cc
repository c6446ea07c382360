#include "ridge/cli/choose_serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/plan/choose/scenario.h"
#include "ridge/report/serving_report.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/served_model.h"

namespace ridge::cli {
namespace {

constexpr int64_t kMostScenarioBytes = 1 << 20;
constexpr int64_t kMostTokens = 1 << 20, kMostCopies = 1 << 20;

bool IsScenario(const std::string& model) { return model.ends_with(".toml"); }

// ---- one model on the command line

// "1,8,32"
Result<std::vector<int64_t>> CountsOf(const char* flag, const std::string& text) {
  std::vector<int64_t> counts;
  for (const std::string_view part : SplitAt(text, ',')) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    const bool whole = error == std::errc() && end == part.data() + part.size();
    if (!whole || count < 1 || count > kMostTokens) {
      return InvalidArgument(fmt::format(
          "{} has '{}'; it must be whole numbers from 1 to {} with commas between, such "
          "as 1,8,32",
          flag, part, kMostTokens));
    }
    counts.push_back(count);
  }
  return counts;
}

Result<ServedModel> ModelOf(const ServeRequest& request) {
  const TrainOptions& options = request.train.options;
  ServedModel model;
  model.model = options.model;
  const bool any_type = !request.train.Has("precision") || options.precision == "auto";
  if (!any_type) model.precision = options.precision;
  if (request.train.Has("batch")) model.batch = options.batch;
  model.copies = request.flags.copies.value_or(1);
  if (request.flags.rate) {
    RIDGE_ASSIGN_OR_RETURN(model.rate_s, ParseRate("--rate", *request.flags.rate));
  }
  return model;
}

Result<ServingLoad> LoadOfModel(const ServeRequest& request) {
  const ServeFlags& flags = request.flags;
  ServingLoad load;
  RIDGE_ASSIGN_OR_RETURN(ServedModel model, ModelOf(request));
  if (flags.streams && !flags.input)
    return InvalidArgument("--streams is without --input. hint: --input video:1920x1080@30");
  if (flags.input) {
    RIDGE_ASSIGN_OR_RETURN(ServingStream stream, ParseStream("--input", *flags.input));
    stream.count = flags.streams.value_or(1);
    load.streams.push_back(std::move(stream));
    model.stream = 0;
  }
  load.models.push_back(std::move(model));
  RIDGE_RETURN_IF_ERROR(CompleteLoad(load));
  return load;
}

// A load for each prompt and number of sequences.
Result<std::vector<ServingLoad>> TokenLoads(const ServingLoad& load, const TokenCounts& usual,
                                            const ServeFlags& flags) {
  std::vector<int64_t> prompts = {usual.prompt}, sequences = {load.models[0].batch};
  if (flags.prompt) {
    RIDGE_ASSIGN_OR_RETURN(prompts, CountsOf("--prompt", *flags.prompt));
  }
  if (flags.sequences) {
    RIDGE_ASSIGN_OR_RETURN(sequences, CountsOf("--sequences", *flags.sequences));
  }
  std::vector<ServingLoad> loads;
  for (const int64_t prompt : prompts) {
    for (const int64_t count : sequences) {
      ServingLoad variant = load;
      variant.models[0].tokens = TokenCounts{prompt, flags.output.value_or(usual.output)};
      variant.models[0].batch = count;
      loads.push_back(std::move(variant));
    }
  }
  return loads;
}

Result<std::vector<ServingLoad>> LoadsOfModel(const ServeRequest& request) {
  const ServeFlags& flags = request.flags;
  RIDGE_ASSIGN_OR_RETURN(const ServingLoad load, LoadOfModel(request));
  const std::optional<TokenCounts> usual = UsualTokens(load.models[0].model);
  if (usual) return TokenLoads(load, *usual, flags);
  if (!flags.prompt && !flags.output && !flags.sequences) return std::vector<ServingLoad>{load};
  return InvalidArgument(fmt::format(
      "{} writes no tokens: --prompt, --output and --sequences are of built-in language "
      "models, such as llama, gpt2 and whisper_tiny",
      load.models[0].model));
}

// ---- scenarios

// A flag of --serve; `is_load`: it says what is served, as a scenario does, and not a limit.
struct GivenFlag {
  const char* flag;
  bool is_given, is_load;
};

std::vector<GivenFlag> GivenFlags(const ServeFlags& flags) {
  return {{"--rate", flags.rate.has_value(), true},
          {"--latency", flags.latency.has_value(), false},
          {"--input", flags.input.has_value(), true},
          {"--streams", flags.streams.has_value(), true},
          {"--copies", flags.copies.has_value(), true},
          {"--prompt", flags.prompt.has_value(), true},
          {"--output", flags.output.has_value(), true},
          {"--sequences", flags.sequences.has_value(), true},
          {"--board-power", flags.board_power.has_value(), false}};
}

Status RefuseBesideScenario(const ServeRequest& request) {
  std::vector<GivenFlag> given = GivenFlags(request.flags);
  given.push_back({"--batch", request.train.Has("batch"), /*is_load=*/true});
  given.push_back({"--precision", request.train.Has("precision"), /*is_load=*/true});
  for (const auto& [flag, is_given, is_load] : given) {
    if (is_given && is_load)
      return InvalidArgument(
          fmt::format("{} says what is served; {} is for one model. hint: write "
                      "it into the file",
                      request.train.options.model, flag));
  }
  return Status();
}

Status CheckPrecisions(const ServingLoad& load) {
  static const std::vector<std::string> known = {"f32", "tf32", "bf16", "f16"};
  for (const ServedModel& model : load.models) {
    if (model.precision.empty()) continue;
    if (std::find(known.begin(), known.end(), model.precision) != known.end()) continue;
    return InvalidArgument(
        fmt::format("precision is '{}'; it must be one of f32, tf32, bf16, f16", model.precision));
  }
  return Status();
}

Result<std::vector<ServingLoad>> LoadsOf(const ServeRequest& request) {
  const std::string& model = request.train.options.model;
  if (!IsScenario(model)) return LoadsOfModel(request);
  RIDGE_RETURN_IF_ERROR(RefuseBesideScenario(request));
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(model, kMostScenarioBytes));
  RIDGE_ASSIGN_OR_RETURN(ServingLoad load, ParseScenario(text, model));
  RIDGE_RETURN_IF_ERROR(CheckPrecisions(load));
  return std::vector<ServingLoad>{std::move(load)};
}

// Those of the command line before those of a file.
Status TakeLimits(const ServeRequest& request, std::vector<ServingLoad>& loads) {
  ServingLimits given;
  if (request.flags.latency) {
    RIDGE_ASSIGN_OR_RETURN(given.latency_s, ParseSeconds("--latency", *request.flags.latency));
  }
  if (request.flags.board_power) {
    RIDGE_ASSIGN_OR_RETURN(given.power_w, ParseWatts("--board-power", *request.flags.board_power));
  }
  if (request.train.Has("fit")) given.memory_bytes = request.train.options.fit_bytes;
  for (ServingLoad& load : loads) {
    if (given.latency_s) load.limits.latency_s = given.latency_s;
    if (given.power_w) load.limits.power_w = given.power_w;
    if (given.memory_bytes) load.limits.memory_bytes = given.memory_bytes;
  }
  return Status();
}

// ---- plans

std::string PrecisionFor(const ServedModel& model, const Hardware& hardware) {
  return model.precision.empty() ? FastestPrecision(hardware) : model.precision;
}

// The graphs of each load's models, built once for each type of weights.
class GraphCache {
 public:
  explicit GraphCache(std::map<std::string, int64_t> dims) : dims_(std::move(dims)) {}

  Result<const ServedGraphs*> Find(const ServedModel& model, const std::string& precision) {
    const DType stored = NamedOperands(precision);
    const TokenCounts tokens = model.tokens.value_or(TokenCounts{});
    const auto key =
        std::make_tuple(model.model, stored, model.batch, tokens.prompt, tokens.output);
    const auto known = graphs_.find(key);
    if (known != graphs_.end()) return &known->second;
    RIDGE_ASSIGN_OR_RETURN(ServedGraphs graphs, LoadServedGraphs(model, stored, dims_));
    return &graphs_.emplace(key, std::move(graphs)).first->second;
  }

 private:
  using GraphKey = std::tuple<std::string, DType, int64_t, int64_t, int64_t>;
  const std::map<std::string, int64_t> dims_;
  std::map<GraphKey, ServedGraphs> graphs_;
};

// What a model takes on a device; none where too little is known of it.  Fails where the model
// cannot be loaded.
struct DeviceCost {
  ModelCost cost;
  int64_t memory_bytes = 0;
};

Result<std::optional<DeviceCost>> CostOn(const Hardware& hardware, const ServedModel& model,
                                         GraphCache& cache) {
  const std::string precision = PrecisionFor(model, hardware);
  RIDGE_ASSIGN_OR_RETURN(const ServedGraphs* graphs, cache.Find(model, precision));
  const Result<OpenedMachine> opened = OpenPlannedMachine(hardware, precision, kOwnSoftware);
  if (!opened.ok()) return std::optional<DeviceCost>();
  const Result<ModelCost> cost = PlanServed(*graphs, precision, opened->machine);
  if (!cost.ok()) return std::optional<DeviceCost>();
  return std::optional(DeviceCost{*cost, opened->machine.memory_bytes});
}

Result<std::optional<ServingOffer>> OfferOn(const Hardware& hardware, const ServingLoad& load,
                                            const ServeRequest& request, GraphCache& cache) {
  std::vector<ModelCost> costs;
  int64_t memory_bytes = 0;
  for (const ServedModel& model : load.models) {
    RIDGE_ASSIGN_OR_RETURN(const auto cost, CostOn(hardware, model, cache));
    if (!cost) return std::optional<ServingOffer>();
    costs.push_back(cost->cost);
    memory_bytes = cost->memory_bytes;
  }
  const bool own =
      std::find(request.own.begin(), request.own.end(), hardware.id) != request.own.end();
  return std::optional(
      MakeServingOffer(hardware, load, costs, memory_bytes, {own, request.usd_kwh}));
}

Status PlanAll(const ServeRequest& request, const std::vector<ServingLoad>& loads,
               ServingTable& table) {
  RIDGE_ASSIGN_OR_RETURN(auto dims, ParseDims(request.train.options.dims));
  GraphCache cache(std::move(dims));
  for (const Hardware& hardware : request.devices) {
    bool planned = true;
    for (const ServingLoad& load : loads) {
      RIDGE_ASSIGN_OR_RETURN(auto offer, OfferOn(hardware, load, request, cache));
      if (offer) table.offers.push_back(std::move(*offer));
      planned = planned && offer;
    }
    if (!planned) table.skipped.push_back(hardware.id);
  }
  if (!table.offers.empty()) return Status();
  return InvalidArgument("none of the devices can be planned for. hint: ridge devices");
}

}  // namespace

Result<int> RunServing(const ServeRequest& request, const Terminal& terminal) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<ServingLoad> loads, LoadsOf(request));
  RIDGE_RETURN_IF_ERROR(TakeLimits(request, loads));
  ServingTable table;
  table.title = ServingTitle(loads[0]);
  if (request.all) table.rows = SIZE_MAX;
  RIDGE_RETURN_IF_ERROR(PlanAll(request, loads, table));
  RankServing(table.offers, request.order);
  const bool any = table.offers.front().is_allowed();
  if (request.json) {
    PrintData(ServingJson(table) + "\n");
  } else if (any) {
    PrintData(ServingReport(table, terminal));
  }
  if (any) return kExitOk;
  return Status(ErrorCode::kOutOfMemory, "choose: " + NothingServesText(table.offers));
}

Status RefuseServeFlags(const ServeFlags& flags) {
  for (const auto& [flag, is_given, is_load] : GivenFlags(flags)) {
    if (is_given) return InvalidArgument(fmt::format("{} is of --serve, which is missing", flag));
  }
  return Status();
}

void AddServeFlags(CLI::App& app, ServeFlags& flags) {
  constexpr const char* kGroup = "Serving";
  AddSwitch(app, "--serve", flags.serve,
            "Choose a device that serves MODEL, or a scenario's models (scenario.toml)")
      ->group(kGroup);
  AddText(app, "--rate", flags.rate, "RATE",
          "Requests: 120/s, 90/min; of each sender of --input (every picture; without --input one "
          "after another)")
      ->group(kGroup);
  AddText(app, "--latency", flags.latency, "TIME", "An answer must come in this time: 80ms, 1.5s")
      ->group(kGroup);
  AddText(app, "--board-power", flags.board_power, "WATTS",
          "What the board may take on the mean: 70W")
      ->group(kGroup);
  AddText(app, "--input", flags.input, "INPUT",
          "What is decoded: video:1920x1080@30, video:1920x1080@30:hevc, jpeg:1920x1080@5")
      ->group(kGroup);
  AddInteger(app, "--streams", flags.streams, {1, kMostCopies}, "N", "Senders of --input (1)")
      ->group(kGroup);
  AddInteger(app, "--copies", flags.copies, {1, kMostCopies}, "N",
             "Processes that each hold the model (1)")
      ->group(kGroup);
  AddText(app, "--prompt", flags.prompt, "N[,N]",
          "Of a language model: tokens that are read (512, or half of its context)")
      ->group(kGroup);
  AddInteger(app, "--output", flags.output, {1, kMostTokens}, "N",
             "Of a language model: tokens that are written (128, or half of its context)")
      ->group(kGroup);
  AddText(app, "--sequences", flags.sequences, "N[,N]",
          "Of a language model: texts that are written at the same time (1)")
      ->group(kGroup);
}

}  // namespace ridge::cli
