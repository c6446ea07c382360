// `ridge predict`: what a trained model says of pictures, rows, texts and arrays.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/predict_results.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/data/image_folder.h"
#include "ridge/train/store/run.h"
#include "ridge/use/answer_files.h"
#include "ridge/use/box_writer.h"
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
  std::optional<double> score;
  TrainFlags place;  // of these: where to run
  OutputFlags output;
  bool json = false;
};

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
InputAnswer Ranking(const Signature& signature, const std::string& name,
                    const std::vector<double>& answer, int64_t top) {
  InputAnswer prediction{name, {}, answer[0]};
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
Result<InputAnswer> OfMask(const std::string& name, const Dims& dims,
                           const std::vector<double>& output, int64_t top, MaskWriter* writer) {
  const std::vector<uint8_t> ids = ClassOfPixels(output, dims[0]);
  std::vector<double> shares(static_cast<size_t>(dims[0]), 0);
  for (const uint8_t id : ids) shares[id] += 1 / static_cast<double>(ids.size());
  InputAnswer prediction{name, {}, 0};
  for (const int64_t index : Largest(shares, top))
    prediction.top.push_back({index, shares[static_cast<size_t>(index)]});
  if (writer == nullptr) return prediction;
  RIDGE_ASSIGN_OR_RETURN(prediction.file, writer->Write(name, ids));
  return prediction;
}

std::optional<PictureTarget> TargetOf(const Signature& signature) {
  if (!signature.preprocessing.pictures) return std::nullopt;
  return signature.preprocessing.pictures->target;
}

// The picture of the input with its boxes; a file of another kind has none.
Result<std::string> WriteBoxes(const Signature& signature, const InputAnswer& prediction,
                               AnswerPaths& paths) {
  if (!IsPictureFile(prediction.name)) return std::string();
  RIDGE_ASSIGN_OR_RETURN(RgbPicture picture, ReadRgb(prediction.name));
  std::vector<TitledBox> titled;
  for (const DetectedBox& box : prediction.boxes)
    titled.push_back(
        {box, fmt::format("{} {:.0f}", ClassName(signature, box.label), 100 * box.score)});
  DrawBoxes(titled, picture);
  const std::string file = paths.Next(prediction.name) + ".png";
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(file, EncodePng(picture)));
  return file;
}

// Boxes in pixels of the input; `dims` [places, 4 + classes].
Result<InputAnswer> OfBoxes(const Signature& signature, const std::string& name, const Dims& dims,
                            const std::vector<double>& output, const DetectionLimits& limits,
                            AnswerPaths* paths) {
  InputAnswer prediction{name, {}, 0};
  RIDGE_ASSIGN_OR_RETURN(prediction.boxes, BoxesOfInput(DetectBoxes(output, dims[1] - 4, limits),
                                                        name, TargetOf(signature)));
  if (paths == nullptr) return prediction;
  RIDGE_ASSIGN_OR_RETURN(prediction.file, WriteBoxes(signature, prediction, *paths));
  return prediction;
}

// Where answers that are pictures go; none without --out.
struct Writers {
  std::optional<MaskWriter> masks;
  std::optional<AnswerPaths> boxes;
};

Result<Writers> WritersFor(const PredictVerb& verb, const Predictor& predictor) {
  const Signature& signature = predictor.signature();
  const bool is_mask = signature.kind == AnswerKind::kMask;
  const bool is_boxes = signature.kind == AnswerKind::kBoxes;
  const auto refuse = [&](const char* option, const char* what) {
    return InvalidArgument(
        fmt::format("predict: {} is for {}; {} answers otherwise", option, what, *verb.model));
  };
  if (verb.out && !is_mask && !is_boxes) return refuse("--out", "masks and boxes");
  if (verb.score && !is_boxes) return refuse("--score", "boxes");
  Writers writers;
  if (verb.out && is_boxes) writers.boxes.emplace(*verb.out);
  const Dims& dims = predictor.output_dims();
  if (verb.out && is_mask)
    writers.masks.emplace(*verb.out, ImageSize{dims[1], dims[2]}, TargetOf(signature));
  return writers;
}

DetectionLimits LimitsOf(const PredictVerb& verb) {
  DetectionLimits limits;
  limits.score = verb.score.value_or(limits.score);
  limits.most = verb.top.value_or(limits.most);
  return limits;
}

// The answer that is no mean of several.
Result<InputAnswer> OfPicture(const PredictVerb& verb, const Predictor& predictor,
                              const std::string& name, const std::vector<double>& output,
                              int64_t top, Writers& writers) {
  const Signature& signature = predictor.signature();
  if (signature.kind == AnswerKind::kBoxes)
    return OfBoxes(signature, name, predictor.output_dims(), output, LimitsOf(verb),
                   writers.boxes ? &*writers.boxes : nullptr);
  return OfMask(name, predictor.output_dims(), output, top,
                writers.masks ? &*writers.masks : nullptr);
}

Result<PredictResults> PredictAll(const PredictVerb& verb, Predictor& predictor,
                                  const std::function<void(const std::string&)>& say) {
  PredictResults results;
  results.signature = predictor.signature();
  RIDGE_ASSIGN_OR_RETURN(Writers writers, WritersFor(verb, predictor));
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
      } else if (!results.is_mask() && !results.is_boxes()) {
        const std::vector<double> answer = Answer(results.signature, output);
        results.predictions.push_back(Ranking(results.signature, name, answer, top));
        means.Add(answer);
      } else {
        RIDGE_ASSIGN_OR_RETURN(InputAnswer answer,
                               OfPicture(verb, predictor, name, output, top, writers));
        results.predictions.push_back(std::move(answer));
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

std::string WrittenText(const PredictResults& results) {
  const auto count = static_cast<int64_t>(results.predictions.size());
  if (results.is_mask())
    return FormatCountOf(count, "mask") + ", each with an overlay for a picture";
  return fmt::format("{} in {}", FormatCountOf(results.boxes(), "box"),
                     FormatCountOf(count, "picture"));
}

// Whether parameters of the run rest on the host of its GPU.
Result<bool> HasPlaced(const std::string& model) {
  if (!Run::Exists(model)) return false;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
  return !run.options().place.empty();
}

Result<int> RunPredict(const CLI::App& app, const PredictVerb& verb) {
  RIDGE_RETURN_IF_ERROR(CheckArguments(app, verb));
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  const auto say = SayUnless(verb.output.quiet);
  PredictorRequest request{*verb.model, "", verb.batch};
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  MachineChoice choice = ChoiceOf(verb.place);
  RIDGE_ASSIGN_OR_RETURN(choice.host_kernels, HasPlaced(request.model));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened, OpenMachine(choice, say));
  RIDGE_ASSIGN_OR_RETURN(Predictor predictor, Predictor::Open(request, opened.machine));
  RIDGE_ASSIGN_OR_RETURN(const PredictResults results, PredictAll(verb, predictor, say));
  for (const SkippedInput& skipped : results.skipped) PrintWarning("left out: " + skipped.why);
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
  if (verb.out) say(fmt::format("{}: {}", *verb.out, WrittenText(results)));
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
             "Classes for each input (5 for one input, 1 for several); of a detector boxes (300)");
  AddNumber(app, "--score", verb->score, {.minimum = 0, .maximum = 1}, "S",
            "Of a detector: boxes with a higher score (0.25)");
  AddChoice(app, "--bad-records", verb->bad_records, {"fail", "skip"},
            "A file that cannot be read: end, or leave it out with a warning (fail)");
  AddCheckpointFlag(app, verb->checkpoint);
  AddInteger(app, "--batch", verb->batch, {.minimum = 1}, "N",
             "Samples a time (the run's; of a file 32)")
      ->group("Model");
  AddPlaceFlags(app, verb->place);
  AddText(app, "--out", verb->out, "DIR",
          "Of a model of masks: write NAME.png, a palette PNG of class ids, and NAME.overlay.png; "
          "of a detector: NAME.png, the picture with its boxes")
      ->group(kOutputGroup);
  AddText(app, "--csv", verb->csv, "FILE", "Write a table (-: standard output)")
      ->group(kOutputGroup);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunPredict(app, *verb); };
}

}  // namespace ridge::cli
