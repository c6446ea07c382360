#include "ridge/data/text_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/data/container/sample_sets.h"
#include "ridge/data/text/open_tokenizer.h"
#include "ridge/data/text_files.h"
#include "ridge/data/text_reader.h"
#include "ridge/data/text_setup.h"

namespace ridge {
namespace {

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// "line", "paragraph", "file", else the line that cuts.
std::string FormOf(const TextOptions& text, const TextLayout& layout) {
  if (!text.record.empty()) return text.record;
  return layout.language && !layout.packed ? "file" : "line";
}

Result<int32_t> LabelOf(const TextFile& file, const std::vector<std::string>& classes) {
  const auto found = std::find(classes.begin(), classes.end(), file.of_class);
  if (found != classes.end()) return static_cast<int32_t>(found - classes.begin());
  return BadData(file.path, fmt::format("its class '{}' is none of the run's", file.of_class));
}

struct Opening {
  TextOptions text;
  TextFileSets files;
  ChosenTokenizer chosen;
  std::vector<std::string> classes;
};

Result<Opening> Begin(const std::string& name, const std::string& argument,
                      const DataOptions& options) {
  Opening opening;
  RIDGE_ASSIGN_OR_RETURN(opening.text, ParseTextOptions(name, argument, /*json_lines=*/false));
  RIDGE_ASSIGN_OR_RETURN(opening.files, FindTextFiles(name, opening.text));
  RIDGE_ASSIGN_OR_RETURN(opening.chosen, ChooseTokenizer(name, opening.text, options));
  const bool known = options.preprocessing != nullptr && !options.preprocessing->classes.empty();
  opening.classes = known ? options.preprocessing->classes : ClassesOf(opening.files.train);
  return opening;
}

Status CheckClasses(const std::string& name, const Opening& opening) {
  if (opening.classes.size() > 1) return Status();
  return BadData(name,
                 fmt::format("has one class, '{}'; a classifier needs two. hint: label=folder "
                             "or label=file says what a class is",
                             opening.classes.front()));
}

int64_t ClassCount(const Opening& opening) {
  return opening.text.label == "none" ? 0 : static_cast<int64_t>(opening.classes.size());
}

Result<SampleSet> OpenFiles(const std::string& name, const Opening& opening,
                            const TextLayout& layout, const std::vector<TextFile>& files,
                            double hold_out) {
  const Tokenizer& tokenizer = *opening.chosen.tokenizer;
  const bool classifies = layout.labeled && !layout.language;
  TextReader reader(tokenizer, layout);
  for (const TextFile& file : files) {
    int32_t label = 0;
    if (classifies) {
      RIDGE_ASSIGN_OR_RETURN(label, LabelOf(file, opening.classes));
    }
    reader.BeginFile(file.path);
    RIDGE_RETURN_IF_ERROR(
        ForEachRecord(file.path, FormOf(opening.text, layout), [&](const TextRecord& record) {
          reader.Add(record, label);
          return Status();
        }));
  }
  const int64_t classes = classifies ? static_cast<int64_t>(opening.classes.size()) : 0;
  return FinishTexts(name, reader, layout, tokenizer.vocab(), classes, hold_out);
}

}  // namespace

Result<TokenizerPtr> TokenizerOf(const TextPreprocessing& text) {
  RIDGE_ASSIGN_OR_RETURN(const OpenedTokenizer opened,
                         OpenTokenizer(text.files.empty() ? "bytes" : text.files.front()));
  return opened.tokenizer;
}

Result<DataSplits> OpenText(const std::string& name, const std::string& argument,
                            const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  RIDGE_ASSIGN_OR_RETURN(const TextLayout layout,
                         LayoutFor(name, opening.text, *opening.chosen.tokenizer, options));
  const bool classifies = layout.labeled && !layout.language;
  if (classifies) RIDGE_RETURN_IF_ERROR(CheckClasses(name, opening));
  DataSplits splits;
  RIDGE_ASSIGN_OR_RETURN(const SampleSet training,
                         OpenFiles(name, opening, layout, opening.files.train, options.hold_out));
  SetTraining(training, splits);
  const std::pair<const std::vector<TextFile>&, SourcePtr&> further[] = {
      {opening.files.validation, splits.validation}, {opening.files.test, splits.test}};
  for (const auto& [files, source] : further) {
    if (files.empty() || source != nullptr) continue;
    RIDGE_ASSIGN_OR_RETURN(const SampleSet set,
                           OpenFiles(name, opening, layout, files, /*hold_out=*/0));
    source = set.all;
  }
  auto preprocessing = std::make_shared<Preprocessing>();
  if (classifies) preprocessing->classes = opening.classes;
  preprocessing->text = opening.chosen.text;
  splits.preprocessing = std::move(preprocessing);
  splits.sizes = SizesOfText(opening.text, *opening.chosen.tokenizer, ClassCount(opening));
  splits.notes = opening.files.notes;
  for (const auto& notes : {opening.chosen.notes, PackingNotes(name, layout, options)})
    splits.notes.insert(splits.notes.end(), notes.begin(), notes.end());
  return splits;
}

Result<SourcePtr> OpenTexts(const std::string& name, const std::vector<std::string>& texts,
                            const DataOptions& options) {
  TextOptions text;
  text.label = "none";
  RIDGE_ASSIGN_OR_RETURN(const ChosenTokenizer chosen, ChooseTokenizer(name, text, options));
  const Tokenizer& tokenizer = *chosen.tokenizer;
  RIDGE_ASSIGN_OR_RETURN(const TextLayout layout, LayoutFor(name, text, tokenizer, options));
  TextReader reader(tokenizer, layout);
  reader.BeginFile(name);
  for (const std::string& one : texts)
    reader.Add({one, reader.records() + 1, /*offset=*/0}, /*label=*/0);
  RIDGE_ASSIGN_OR_RETURN(const SampleSet set,
                         FinishTexts(name, reader, layout, tokenizer.vocab(), /*classes=*/0,
                                     /*hold_out=*/0));
  return set.all;
}

Result<DataFacts> TextFacts(const std::string& name, const std::string& argument,
                            const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  DataFacts facts;
  facts.sizes = SizesOfText(opening.text, *opening.chosen.tokenizer, ClassCount(opening));
  if (opening.text.length)
    facts.fields.push_back({"input_ids", {DType::kI64, {*opening.text.length}}});
  return facts;
}

}  // namespace ridge
