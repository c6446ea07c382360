// `ridge predict`: what a trained model says of pictures, rows, texts and arrays.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/table.h"
#include "ridge/use/mask_writer.h"
#include "ridge/use/predictor.h"
#include "ridge/use/predictor_inputs.h"

namespace ridge::cli {
namespace {

constexpr int64_t kUsualTop = 5;

struct PredictVerb {
  std::optional<std::string> model, checkpoint, bad_records, csv, out;
  std::vector<std::string> inputs;
  std::optional<int64_t> top, batch;
  TrainFlags place;  // of these: where to run
  OutputFlags output;
  bool json = false;
};

struct Ranked {
  int64_t index = 0;
  double probability = 0;  // of a mask: the share of its pixels
};

struct Prediction {
  std::string name;
  std::vector<Ranked> top;  // best first; empty of numbers
  double number = 0;
  std::string mask = {};  // the file that was written
  std::string text = {};
};

struct Skipped {
  std::string name, why;
};

struct Results {
  Signature signature;
  int64_t step = 0;
  std::vector<Prediction> predictions;
  std::vector<Skipped> skipped;

  bool is_mask() const { return signature.kind == AnswerKind::kMask; }
  const char* probability() const { return is_mask() ? "share" : "probability"; }
  bool is_text() const { return signature.kind == AnswerKind::kText; }
  bool has_classes() const { return signature.kind != AnswerKind::kNumber && !is_text(); }
  std::string label() const {
    if (is_text()) return "text";
    return signature.label.empty() ? "value" : signature.label;
  }
  std::string NameOf(const Ranked& ranked) const { return ClassName(signature, ranked.index); }
};

// ---- texts

nlohmann::ordered_json RankedJson(const Results& results, const Ranked& ranked) {
  return {{"class", results.NameOf(ranked)},
          {"index", ranked.index},
          {results.probability(), ranked.probability}};
}

std::string ResultsJson(const Results& results) {
  nlohmann::ordered_json json;
  json["step"] = results.step;
  json["answer"] = results.is_mask()       ? "mask"
                   : results.is_text()     ? "text"
                   : results.has_classes() ? "classes"
                                           : "number";
  if (!results.signature.label.empty()) json["label"] = results.signature.label;
  json["predictions"] = nlohmann::ordered_json::array();
  for (const Prediction& prediction : results.predictions) {
    nlohmann::ordered_json entry = {{"input", prediction.name}};
    if (results.has_classes()) {
      entry.update(RankedJson(results, prediction.top[0]));
      entry["top"] = nlohmann::ordered_json::array();
      for (const Ranked& ranked : prediction.top)
        entry["top"].push_back(RankedJson(results, ranked));
    } else if (results.is_text()) {
      entry["text"] = prediction.text;
    } else {
      entry["value"] = prediction.number;
    }
    if (!prediction.mask.empty()) entry["mask"] = prediction.mask;
    json["predictions"].push_back(std::move(entry));
  }
  json["skipped"] = nlohmann::ordered_json::array();
  for (const Skipped& skipped : results.skipped)
    json["skipped"].push_back({{"input", skipped.name}, {"reason", skipped.why}});
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// RFC 4180.
std::string Cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string ResultsCsv(const Results& results) {
  std::string text = "input";
  const size_t top = results.predictions.empty() ? 0 : results.predictions[0].top.size();
  for (size_t i = 0; i < top; ++i) {
    const std::string number = i == 0 ? "" : fmt::format("_{}", i + 1);
    text += fmt::format(",class{0},{1}{0}", number, results.probability());
  }
  if (!results.has_classes()) text += "," + Cell(results.label());
  text += "\n";
  for (const Prediction& prediction : results.predictions) {
    text += Cell(prediction.name);
    for (const Ranked& ranked : prediction.top)
      text += fmt::format(",{},{}", Cell(results.NameOf(ranked)), ranked.probability);
    if (results.is_text())
      text += "," + Cell(prediction.text);
    else if (!results.has_classes())
      text += fmt::format(",{}", prediction.number);
    text += "\n";
  }
  return text;
}

// One input: its classes below each other.
std::string SingleText(const Results& results, const Terminal& terminal) {
  constexpr int kBarWidth = 24;
  const Prediction& prediction = results.predictions[0];
  std::string text = Styled(prediction.name, Style::kBold, terminal) + "\n";
  Table table({{""}, {"", Align::kRight}, {""}});
  for (size_t i = 0; i < prediction.top.size(); ++i) {
    const Ranked& ranked = prediction.top[i];
    table.AddRow({results.NameOf(ranked), FormatPercent(ranked.probability),
                  BarText(ranked.probability, kBarWidth, terminal.unicode)},
                 i == 0 ? Style::kBold : Style::kPlain);
  }
  return text + table.ToText(terminal);
}

std::string ResultsText(const Results& results, const Terminal& terminal) {
  const bool one = results.predictions.size() == 1;
  if (one && results.has_classes()) return SingleText(results, terminal);
  if (one && results.is_text()) return results.predictions[0].text + "\n";
  std::vector<Column> columns = {{"input"}};
  const size_t top = results.predictions[0].top.size();
  for (size_t i = 0; i < top; ++i) {
    columns.push_back({i == 0 ? "class" : fmt::format("class {}", i + 1)});
    columns.push_back({i == 0 ? results.probability() : "", Align::kRight});
  }
  if (!results.has_classes())
    columns.push_back({results.label(), results.is_text() ? Align::kLeft : Align::kRight});
  Table table(std::move(columns));
  for (const Prediction& prediction : results.predictions) {
    std::vector<std::string> cells = {prediction.name};
    for (const Ranked& ranked : prediction.top) {
      cells.push_back(results.NameOf(ranked));
      cells.push_back(FormatPercent(ranked.probability));
    }
    if (results.is_text())
      cells.push_back(prediction.text);
    else if (!results.has_classes())
      cells.push_back(fmt::format("{:.6g}", prediction.number));
    table.AddRow(std::move(cells));
  }
  return table.ToText(terminal, /*indent=*/0);
}

// ---- the work

// A line every few seconds for what takes longer.
class Counter {
 public:
  Counter(int64_t total, std::function<void(const std::string&)> say)
      : total_(total), say_(std::move(say)) {}

  void Add() {
    ++done_;
    const double now = MonotonicSeconds();
    if (now - said_ < kEvery) return;
    said_ = now;
    say_(fmt::format("{} of {} samples, {:.0f} samples/s", FormatInteger(done_),
                     FormatInteger(total_), static_cast<double>(done_) / (now - begin_)));
  }

 private:
  static constexpr double kEvery = 5;
  int64_t total_, done_ = 0;
  std::function<void(const std::string&)> say_;
  double begin_ = MonotonicSeconds(), said_ = begin_;
};

// `answer`: probabilities, a number, or the scores of letters.
Prediction Ranking(const Signature& signature, const std::string& name,
                   const std::vector<double>& answer, int64_t top) {
  Prediction prediction{name, {}, answer[0]};
  if (signature.kind == AnswerKind::kNumber) return prediction;
  if (signature.kind == AnswerKind::kText) {
    prediction.text = SpelledText(signature, answer);
    return prediction;
  }
  for (int64_t index : Largest(answer, top))
    prediction.top.push_back({index, answer[static_cast<size_t>(index)]});
  return prediction;
}

// The means of the answers of an input's parts, each behind the part's own.
class PartMeans {
 public:
  explicit PartMeans(const InputSet& set) : set_(set) {}

  void Add(const std::vector<double>& answer) {
    sum_.resize(answer.size());
    for (size_t i = 0; i < answer.size(); ++i) sum_[i] += answer[i];
    ++count_;
  }
  // Behind sample `index`: the mean where a part ends that has answers.
  std::optional<std::vector<double>> At(int64_t index) {
    if (part_ == set_.parts.size() || index + 1 < set_.parts[part_].end) return std::nullopt;
    ++part_;
    std::vector<double> mean = std::exchange(sum_, {});
    const auto count = static_cast<double>(std::exchange(count_, 0));
    for (double& value : mean) value /= count;
    return mean.empty() ? std::nullopt : std::optional(std::move(mean));
  }
  std::string name() const { return set_.parts[part_ - 1].name + " mean"; }

 private:
  const InputSet& set_;
  std::vector<double> sum_;
  int64_t count_ = 0;
  size_t part_ = 0;
};

// The classes by their share of the pixels; writes the mask where `writer` is given.
Result<Prediction> OfMask(const std::string& name, const Dims& dims,
                          const std::vector<double>& output, int64_t top, MaskWriter* writer) {
  const std::vector<uint8_t> ids = ClassOfPixels(output, dims[0]);
  std::vector<double> shares(static_cast<size_t>(dims[0]), 0);
  for (const uint8_t id : ids) shares[id] += 1 / static_cast<double>(ids.size());
  Prediction prediction{name, {}, 0};
  for (const int64_t index : Largest(shares, top))
    prediction.top.push_back({index, shares[static_cast<size_t>(index)]});
  if (writer == nullptr) return prediction;
  RIDGE_ASSIGN_OR_RETURN(prediction.mask, writer->Write(name, ids));
  return prediction;
}

// None without --out.
Result<std::optional<MaskWriter>> WriterFor(const PredictVerb& verb, const Predictor& predictor) {
  if (!verb.out) return {std::nullopt};
  const Signature& signature = predictor.signature();
  if (signature.kind != AnswerKind::kMask) {
    return InvalidArgument(
        fmt::format("predict: --out is for masks; {} answers otherwise", *verb.model));
  }
  const Dims& dims = predictor.output_dims();
  std::optional<PictureTarget> target;
  if (signature.preprocessing.pictures) target = signature.preprocessing.pictures->target;
  return {std::optional<MaskWriter>(std::in_place, *verb.out, ImageSize{dims[1], dims[2]}, target)};
}

Result<Results> PredictAll(const PredictVerb& verb, Predictor& predictor,
                           const std::function<void(const std::string&)>& say) {
  Results results;
  results.signature = predictor.signature();
  RIDGE_ASSIGN_OR_RETURN(std::optional<MaskWriter> writer, WriterFor(verb, predictor));
  BadInput on_bad;
  if (verb.bad_records == "skip") {
    on_bad = [&](const std::string& name, const Status& why) {
      results.skipped.push_back({name, why.message()});
    };
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<InputSet> sets,
                         OpenInputs(verb.inputs, results.signature, predictor.inputs(), on_bad));
  int64_t total = 0;
  for (const InputSet& set : sets) {
    total += set.source->size();
    for (const std::string& note : set.notes) PrintWarning(note);
  }
  if (total == 0) return results;
  RIDGE_RETURN_IF_ERROR(predictor.Prepare(total));
  results.step = predictor.step();
  for (const std::string& warning : predictor.warnings()) PrintWarning(warning);
  const int64_t top = verb.top.value_or(total == 1 || verb.json ? kUsualTop : 1);
  Counter counter(total, say);
  for (const InputSet& set : sets) {
    PartMeans means(set);
    const auto add = [&](int64_t index, const std::vector<double>& output) -> Status {
      const std::string& name = set.names[static_cast<size_t>(index)];
      if (const std::optional<Status> bad = set.BadSample(index)) {
        on_bad(name, *bad);
      } else if (!results.is_mask()) {
        const std::vector<double> answer = Answer(results.signature, output);
        results.predictions.push_back(Ranking(results.signature, name, answer, top));
        means.Add(answer);
      } else {
        RIDGE_ASSIGN_OR_RETURN(Prediction mask, OfMask(name, predictor.output_dims(), output, top,
                                                       writer ? &*writer : nullptr));
        results.predictions.push_back(std::move(mask));
      }
      if (const auto mean = means.At(index))
        results.predictions.push_back(Ranking(results.signature, means.name(), *mean, top));
      return Status();
    };
    RIDGE_RETURN_IF_ERROR(
        predictor.Run(set.source, [&](int64_t index, const std::vector<double>& output) -> Status {
          counter.Add();
          return add(index, output);
        }));
  }
  return results;
}

Status CheckArguments(const CLI::App& app, const PredictVerb& verb) {
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, verb.model, "RUN", "a run folder, or an exported ONNX file"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, !verb.inputs.empty(), "INPUT", "photo.jpg"));
  return OneOnStandardOutput({{"--json", verb.json}, {"--csv", IsStandardOutput(verb.csv)}});
}

Result<int> RunPredict(const CLI::App& app, const PredictVerb& verb) {
  RIDGE_RETURN_IF_ERROR(CheckArguments(app, verb));
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  const auto say = SayUnless(verb.output.quiet);
  PredictorRequest request{*verb.model, "", verb.batch};
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened, OpenMachine(ChoiceOf(verb.place), say));
  RIDGE_ASSIGN_OR_RETURN(Predictor predictor, Predictor::Open(request, opened.machine));
  RIDGE_ASSIGN_OR_RETURN(const Results results, PredictAll(verb, predictor, say));
  for (const Skipped& skipped : results.skipped) PrintWarning("left out: " + skipped.why);
  if (results.predictions.empty()) {
    return Status(
        ErrorCode::kInvalidData,
        fmt::format("predict: none of {} can be read",
                    FormatCountOf(static_cast<int64_t>(results.skipped.size()), "input")));
  }
  if (verb.csv) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.csv, ResultsCsv(results)));
  if (verb.json) {
    PrintData(ResultsJson(results));
  } else if (!verb.csv) {
    PrintData(ResultsText(results, terminal));
  } else if (!IsStandardOutput(verb.csv)) {
    say(fmt::format("{}: {}", *verb.csv,
                    FormatCountOf(static_cast<int64_t>(results.predictions.size()), "prediction")));
  }
  if (verb.out)
    say(fmt::format("{}: {}, each with an overlay for a picture", *verb.out,
                    FormatCountOf(static_cast<int64_t>(results.predictions.size()), "mask")));
  return kExitOk;
}

}  // namespace

VerbBody AddPredict(CLI::App& app) {
  auto verb = std::make_shared<PredictVerb>();
  AddArgument(app, "RUN", verb->model, "A run folder, or an ONNX file that was exported from one");
  AddTexts(
      app, "INPUT", verb->inputs, "PATH",
      "Pictures, folders of pictures, tables (.csv, .tsv), arrays (.npz, .npy), 'texts', files "
      "of texts")
      ->expected(-1);
  AddInteger(app, "--top", verb->top, {.minimum = 1}, "N",
             "Classes for each input (5 for one input, 1 for several)");
  AddChoice(app, "--bad-records", verb->bad_records, {"fail", "skip"},
            "A file that cannot be read: end, or leave it out with a warning (fail)");
  AddCheckpointFlag(app, verb->checkpoint);
  AddInteger(app, "--batch", verb->batch, {.minimum = 1}, "N",
             "Samples a time (the run's; of a file 32)")
      ->group("Model");
  AddPlaceFlags(app, verb->place);
  AddText(app, "--out", verb->out, "DIR",
          "Of a model of masks: write NAME.png, a palette PNG of class ids, and NAME.overlay.png")
      ->group(kOutputGroup);
  AddText(app, "--csv", verb->csv, "FILE", "Write a table (-: standard output)")
      ->group(kOutputGroup);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunPredict(app, *verb); };
}

}  // namespace ridge::cli
