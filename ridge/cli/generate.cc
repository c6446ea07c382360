// `ridge generate`: text from a language model, token by token.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/split.h"
#include "ridge/core/units.h"
#include "ridge/data/text_data.h"
#include "ridge/train/store/preprocessing_file.h"
#include "ridge/use/generator.h"
#include "ridge/use/sampling.h"

namespace ridge::cli {
namespace {

struct GenerateVerb {
  TrainFlags model;  // of these: model, dims, weights, seed, and where to run
  std::optional<std::string> text, ids, checkpoint;
  int64_t tokens = 50;
  SamplingOptions sampling;
  OutputFlags output;
  bool json = false;
};

// "3,1,4"
Result<std::vector<int64_t>> ParseIds(const std::string& text) {
  std::vector<int64_t> ids;
  for (const std::string_view part : SplitAt(text, ',')) {
    int64_t id = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (error != std::errc() || end != part.data() + part.size() || id < 0) {
      return InvalidArgument(fmt::format(
          "--ids has '{}'; it must be token numbers with commas between. hint: --ids 3,1,4", part));
    }
    ids.push_back(id);
  }
  return ids;
}

// The run's tokenizer; null where it keeps none.
Result<TokenizerPtr> TokenizerOfRun(const std::string& model) {
  if (!Run::Exists(model)) return TokenizerPtr();
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
  RIDGE_ASSIGN_OR_RETURN(const auto preprocessing, PreprocessingOf(run));
  if (preprocessing == nullptr || !preprocessing->text) return TokenizerPtr();
  return TokenizerOf(*preprocessing->text);
}

Result<std::vector<int64_t>> PromptOf(const GenerateVerb& verb, const Tokenizer* tokenizer) {
  if (verb.ids && verb.text)
    return InvalidArgument("a text and --ids are both given. hint: leave one out");
  if (verb.ids) return ParseIds(*verb.ids);
  if (tokenizer == nullptr) {
    return InvalidArgument(
        fmt::format("{} keeps no tokenizer, so a text means nothing to it. hint: --ids 3,1,4",
                    verb.model.options.model));
  }
  const std::vector<TokenId> ids = tokenizer->Encode(*verb.text);
  if (ids.empty()) return InvalidArgument("the text has no token. hint: write a word");
  return std::vector<int64_t>(ids.begin(), ids.end());
}

// Shows tokens as they come: as text, whole characters at a time, or as numbers.
class Writer {
 public:
  explicit Writer(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  void Write(int64_t token) {
    if (tokenizer_ == nullptr) return PrintData(fmt::format("{} ", token));
    const auto id = static_cast<TokenId>(token);
    pending_ += tokenizer_->Decode({&id, 1});
    const size_t whole = WholeCharacters(pending_);
    PrintData(pending_.substr(0, whole));
    std::fflush(stdout);
    pending_.erase(0, whole);
  }

 private:
  // Bytes before a character whose end is to come.
  static size_t WholeCharacters(const std::string& text) {
    for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
      const auto byte = static_cast<uint8_t>(text[text.size() - back]);
      const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      if (length > back) return text.size() - back;
      if (byte < 0x80 || byte >= 0xC0) break;
    }
    return text.size();
  }

  const Tokenizer* tokenizer_;
  std::string pending_;
};

struct Generated {
  std::vector<int64_t> tokens;
  double seconds = 0;  // of all steps, those of the prompt too
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// `say` gets each token as soon as it is drawn.
Result<Generated> Generate(const std::vector<int64_t>& prompt, const GenerateVerb& verb,
                           Generator& generator, const std::function<void(int64_t)>& say) {
  Generated generated;
  std::span<const float> logits;
  const double begin = Now();
  for (int64_t token : prompt) {
    RIDGE_ASSIGN_OR_RETURN(logits, generator.Feed(token));
  }
  for (int64_t i = 0; i < verb.tokens; ++i) {
    const int64_t token = SampleToken(logits, verb.sampling, generator.position());
    generated.tokens.push_back(token);
    say(token);
    if (i + 1 == verb.tokens || generator.position() == generator.context()) break;
    RIDGE_ASSIGN_OR_RETURN(logits, generator.Feed(token));
  }
  generated.seconds = Now() - begin;
  return generated;
}

std::string ResultJson(const std::vector<int64_t>& prompt, const Generated& generated,
                       const Generator& generator, const Tokenizer* tokenizer) {
  nlohmann::ordered_json json = {
      {"prompt_ids", prompt},
      {"ids", generated.tokens},
      {"context", generator.context()},
      {"seconds", generated.seconds},
      {"tokens_per_s", static_cast<double>(generator.position()) / generated.seconds},
      {"arena_bytes", generator.program().arena_bytes}};
  if (tokenizer != nullptr) {
    const std::vector<TokenId> ids(generated.tokens.begin(), generated.tokens.end());
    json["text"] = tokenizer->Decode(ids);
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string SpeedText(const Generated& generated, const Generator& generator) {
  const auto steps = static_cast<double>(generator.position());
  std::string text =
      fmt::format("{} tokens read and written in {}: {:.1f} tokens/s, {}", generator.position(),
                  FormatSeconds(generated.seconds), steps / generated.seconds,
                  FormatBytes(generator.program().arena_bytes));
  if (generator.position() == generator.context())
    text += fmt::format("; the context of {} tokens is full", generator.context());
  return text;
}

Result<GeneratorRequest> RequestOf(const GenerateVerb& verb) {
  const TrainOptions& options = verb.model.options;
  GeneratorRequest request;
  request.model = options.model;
  request.weights = options.weights;
  request.weights_skip = options.weights_skip;
  request.seed = options.seed;
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  return request;
}

Result<int> RunGenerate(const CLI::App& app, GenerateVerb& verb) {
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, verb.model.Has("model"), "MODEL", "a run folder of a language model"));
  if (!verb.ids)
    RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.text, "TEXT", "ridge generate RUN 'Once'"));
  RIDGE_ASSIGN_OR_RETURN(const TokenizerPtr tokenizer, TokenizerOfRun(verb.model.options.model));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> prompt, PromptOf(verb, tokenizer.get()));
  verb.sampling.seed = verb.model.options.seed;
  RIDGE_RETURN_IF_ERROR(CheckSampling(verb.sampling));
  RIDGE_ASSIGN_OR_RETURN(const GeneratorRequest request, RequestOf(verb));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(ChoiceOf(verb.model), SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const auto generator, Generator::Create(request, opened.machine));
  for (const std::string& warning : generator->warnings()) PrintWarning(warning);
  Writer writer(tokenizer.get());
  if (!verb.json && verb.text) PrintData(*verb.text);
  const auto say = [&](int64_t token) {
    if (!verb.json) writer.Write(token);
  };
  RIDGE_ASSIGN_OR_RETURN(const Generated generated, Generate(prompt, verb, *generator, say));
  PrintData(verb.json ? ResultJson(prompt, generated, *generator, tokenizer.get()) : "\n");
  if (!verb.json) SayUnless(verb.output.quiet)(SpeedText(generated, *generator));
  return kExitOk;
}

}  // namespace

VerbBody AddGenerate(CLI::App& app) {
  auto verb = std::make_shared<GenerateVerb>();
  AddModelArgument(app, verb->model,
                   "A run folder, an ONNX file, a graph in text form, or a built-in model");
  AddArgument(app, "TEXT", verb->text, "What to go on from, for a run that keeps its tokenizer");
  AddText(app, "--ids", verb->ids, "LIST",
          "Token numbers to go on from, with commas between, instead of a text");
  AddInteger(
      app, "--tokens", [verb](int64_t n) { verb->tokens = n; }, {.minimum = 1}, "N",
      "Tokens to write, at most (50)");
  AddNumber(
      app, "--temperature", [verb](double t) { verb->sampling.temperature = t; }, {.minimum = 0},
      "T", "Divides the logits; 0 takes the likeliest token always (1)");
  AddInteger(
      app, "--top-k", [verb](int64_t k) { verb->sampling.top_k = k; }, {.minimum = 0}, "N",
      "Draw among the N likeliest tokens; 0: all (0)");
  AddNumber(
      app, "--top-p", [verb](double p) { verb->sampling.top_p = p; },
      {.minimum = 0, .minimum_allowed = false, .maximum = 1}, "P",
      "Draw among the fewest tokens whose probabilities sum to P (1)");
  AddOption(app, verb->model, "seed", "Seed of the draws, and of a model that was not trained (0)");
  AddCheckpointFlag(app, verb->checkpoint);
  AddWeightsFlags(app, verb->model);
  AddPlaceFlags(app, verb->model);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunGenerate(app, *verb); };
}

}  // namespace ridge::cli
