#include "ridge/train/load/length_forms.h"

#include <fmt/format.h>

#include "ridge/models/model.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

// The spec of the whole form, with the sizes that the data gave.
Result<std::string> SpecOf(const std::string& model, const ModelNotes& notes) {
  std::vector<ModelSize> sizes;
  RIDGE_ASSIGN_OR_RETURN(const auto given, ParseDims(notes.data_dims));
  for (const auto& [name, value] : given) sizes.push_back({name, value});
  if (!Run::Exists(model)) return WithSizes(model, sizes);
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
  return run.ModelSource(sizes);
}

// "mask=1 behind the model", of a model that takes it.
std::string MaskHint(const std::string& spec) {
  const Result<ModelSpec> parsed = ParseModelSpec(spec);
  if (parsed.ok() && FindBuiltinModel(parsed->name) != nullptr) {
    for (const ModelParameter& parameter : ParametersOf(parsed->name)) {
      if (parameter.name == "mask") return "mask=1 behind the model, or leave --bucket out";
    }
  }
  return "leave --bucket out, or take a model with that input, such as bert:mask=1";
}

class FormLoader {
 public:
  FormLoader(const TrainOptions& options, const Forward& whole, std::string spec)
      : options_(options), whole_(whole), spec_(std::move(spec)) {}

  Result<LengthForm> Load(int64_t length, int64_t batch) const {
    TrainOptions options = options_;
    RIDGE_ASSIGN_OR_RETURN(options.model, AtLength(spec_, length));
    options.batch = batch;
    options.weights.clear();
    options.weights_skip.clear();
    RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForwardOf(options, whole_));
    return MakeLengthForm(std::move(forward.graph), length);
  }

 private:
  const TrainOptions& options_;
  const Forward& whole_;
  const std::string spec_;
};

}  // namespace

Result<std::vector<LengthForm>> LoadLengthForms(const TrainOptions& options, const Forward& whole,
                                                const std::string& model) {
  std::vector<LengthForm> forms;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, ParseBucket(options.bucket));
  if (lengths.empty()) return forms;
  RIDGE_ASSIGN_OR_RETURN(const std::string spec,
                         SpecOf(model.empty() ? options.model : model, whole.notes));
  if (whole.graph.FindValue("attention_mask") == kNoValue) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: batches of several lengths need the input attention_mask, which "
                              "hides the padding. hint: {}",
                              spec, MaskHint(spec)));
  }
  const FormLoader loader(options, whole, spec);
  RIDGE_ASSIGN_OR_RETURN(const LengthForm shortest, loader.Load(lengths.front(), /*batch=*/1));
  const int64_t longest = WholeLength(whole.graph, whole.facts, shortest);
  if (longest <= lengths.front() || longest < lengths.back()) {
    return InvalidArgument(fmt::format(
        "--bucket is '{}'; the samples are {} tokens long, and lengths must be below that. hint: "
        "length=N behind the data sets it",
        options.bucket, longest == 0 ? lengths.front() : longest));
  }
  for (const int64_t length : lengths) {
    if (length == longest) continue;
    RIDGE_ASSIGN_OR_RETURN(LengthForm form, loader.Load(length, options.batch * longest / length));
    forms.push_back(std::move(form));
  }
  return forms;
}

}  // namespace ridge
