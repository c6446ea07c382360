// Labels are read before the texts are tokenized, because a model asks for the number of classes
// first; both passes leave out the same lines.
#include "ridge/data/json_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "ridge/core/split.h"
#include "ridge/data/container/file_list.h"
#include "ridge/data/container/label_column.h"
#include "ridge/data/json_line.h"
#include "ridge/data/text_reader.h"
#include "ridge/data/text_setup.h"

namespace ridge {
namespace {

constexpr int64_t kLooked = 64;       // records that the fields are found from
constexpr size_t kMostFields = 1024;  // of them
constexpr int64_t kMostLabel = std::numeric_limits<int32_t>::max() - 1;

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

struct TextFields {
  std::string text;
  std::string label;  // "": none
};

// ---- lines

struct JsonText {
  TextRecord record;  // of the text
  std::string label;
};

std::string Origin(const std::string& path, const TextRecord& line) {
  return fmt::format("{}:{}", path, line.line);
}

Status WrongValue(const TextRecord& line, const std::string& field, const std::string& what) {
  return Status(ErrorCode::kInvalidData, fmt::format("byte {}: '{}' {}", line.offset, field, what));
}

const JsonValue* FindValue(const std::vector<JsonValue>& values, const std::string& path) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const JsonValue& value) { return value.path == path; });
  return found == values.end() ? nullptr : &*found;
}

Status CheckLabel(const TextRecord& line, const JsonValue& label) {
  if (label.kind == JsonKind::kOther)
    return WrongValue(line, label.path, "is " + label.text + ", no class");
  if (label.text.empty()) return WrongValue(line, label.path, "is empty");
  if (label.kind != JsonKind::kInteger) return Status();
  int64_t value = -1;
  const char* end = label.text.data() + label.text.size();
  const auto [rest, error] = std::from_chars(label.text.data(), end, value);
  if (error == std::errc() && value >= 0 && value <= kMostLabel) return Status();
  return WrongValue(line, label.path,
                    fmt::format("is {}; classes are 0 to {}", label.text, kMostLabel));
}

// The text and the label of a line; the message of a failure is "byte N: reason".
Status TakeText(const TextRecord& line, const TextFields& fields, std::string& text,
                std::string& label) {
  const auto wants = [&](const std::string& path) {
    return path == fields.text || path == fields.label;
  };
  RIDGE_ASSIGN_OR_RETURN(auto values, ParseJsonLine(line.text, line.offset, wants));
  const JsonValue* found = FindValue(values, fields.text);
  if (found == nullptr) return WrongValue(line, fields.text, "is missing");
  if (found->kind != JsonKind::kText) return WrongValue(line, fields.text, "is no text");
  text = found->text;
  if (fields.label.empty()) return Status();
  found = FindValue(values, fields.label);
  if (found == nullptr) return WrongValue(line, fields.label, "is missing");
  RIDGE_RETURN_IF_ERROR(CheckLabel(line, *found));
  label = found->text;
  return Status();
}

bool Skips(const BadRecordsPtr& bad_records) {
  return bad_records != nullptr && bad_records->skips();
}

// Lines that cannot be read are left out where `bad_records` skips.
class LineReader {
 public:
  LineReader(TextFields fields, BadRecordsPtr bad_records)
      : fields_(std::move(fields)), bad_records_(std::move(bad_records)) {}

  // Records without text are left out.
  Status ForEach(const std::string& path, const std::function<Status(const JsonText&)>& visit) {
    return ForEachRecord(path, "line", [&](const TextRecord& line) {
      std::string text;
      JsonText found;
      const Status taken = TakeText(line, fields_, text, found.label);
      if (!taken.ok()) return Refuse(path, line, taken);
      found.record = {text, line.line, line.offset};
      if (!Trimmed(text).empty()) return visit(found);
      ++empty_;
      return Status();
    });
  }

  const TextFields& fields() const { return fields_; }
  int64_t empty() const { return empty_; }

 private:
  Status Refuse(const std::string& path, const TextRecord& line, const Status& why) {
    const std::string origin = Origin(path, line);
    if (!Skips(bad_records_)) return BadData(origin, why.message());
    return bad_records_->Add(origin, why.message());
  }

  const TextFields fields_;
  const BadRecordsPtr bad_records_;
  int64_t empty_ = 0;
};

// ---- which values are text and label

// What the first records have.
class FieldFinder {
 public:
  Status Look(const std::string& path, bool skips_bad) {
    constexpr ErrorCode kEnough = ErrorCode::kUnavailable;  // ends the pass
    const Status looked = ForEachRecord(path, "line", [&](const TextRecord& line) {
      size_t asked = 0;
      const auto values = ParseJsonLine(line.text, line.offset,
                                        [&](const std::string&) { return ++asked <= kMostFields; });
      if (values.ok()) Count(*values);
      if (!values.ok() && !skips_bad) return BadData(Origin(path, line), values.status().message());
      return ++lines_ < kLooked ? Status() : Status(kEnough, "");
    });
    return looked.code() == kEnough ? Status() : looked;
  }

  bool IsDone() const { return lines_ >= kLooked; }

  Result<TextFields> Choose(const std::string& name, const TextOptions& options, bool needs_label,
                            std::vector<std::string>& notes) const {
    TextFields fields;
    if (options.label != "none") fields.label = options.label;
    if (fields.label.empty() && options.label != "none") fields.label = GuessLabel(options.text);
    fields.text = options.text.empty() ? GuessText(fields.label) : options.text;
    if (fields.text.empty()) {
      return BadData(name, fmt::format("which value is the text? Its records have {}. hint: "
                                       "text=FIELD behind a comma",
                                       Names()));
    }
    if (fields.label.empty() && needs_label && options.label != "none") {
      return BadData(name, fmt::format("which value is the label? Its records have {}. hint: "
                                       "label=FIELD behind a comma",
                                       Names()));
    }
    const bool guessed = options.text.empty() || (options.label.empty() && needs_label);
    if (guessed) {
      notes.push_back(
          fmt::format("{}: reads '{}' as text{}", name, fields.text,
                      fields.label.empty() ? "" : fmt::format(" and '{}' as label", fields.label)));
    }
    return fields;
  }

 private:
  struct Seen {
    std::string path;
    int64_t texts = 0, classes = 0;  // records where it is a text, and where it could be a label
  };

  void Count(const std::vector<JsonValue>& values) {
    ++records_;
    for (const JsonValue& value : values) {
      auto found = std::find_if(seen_.begin(), seen_.end(),
                                [&](const Seen& seen) { return seen.path == value.path; });
      if (found == seen_.end()) {
        if (seen_.size() == kMostFields) continue;
        found = seen_.insert(seen_.end(), {value.path});
      }
      found->texts += value.kind == JsonKind::kText;
      found->classes += value.kind != JsonKind::kOther;
    }
  }

  // The value of a common name, else the only one that is left.
  std::string GuessLabel(const std::string& text) const {
    for (const char* common : {"label", "labels", "target", "class", "category", "y"}) {
      for (const Seen& seen : seen_) {
        if (seen.path == common && seen.classes > 0 && seen.path != text) return seen.path;
      }
    }
    std::vector<std::string> left;
    const std::string taken = text.empty() ? GuessText("") : text;
    for (const Seen& seen : seen_) {
      if (seen.path != taken && seen.classes == records_) left.push_back(seen.path);
    }
    return left.size() == 1 && !taken.empty() ? left.front() : "";
  }

  std::string GuessText(const std::string& label) const {
    std::vector<std::string> texts;
    for (const Seen& seen : seen_) {
      if (seen.path == "text" && seen.texts > 0) return seen.path;
      if (seen.path != label && seen.texts > 0) texts.push_back(seen.path);
    }
    return texts.size() == 1 ? texts.front() : "";
  }

  std::string Names() const {
    constexpr size_t kShown = 12;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(kShown, seen_.size()); ++i) names.push_back(seen_[i].path);
    if (seen_.size() > kShown) names.emplace_back("...");
    return names.empty() ? "no values" : fmt::format("{}", fmt::join(names, ", "));
  }

  std::vector<Seen> seen_;  // in the order in which they came
  int64_t records_ = 0, lines_ = 0;
};

// ---- opening

struct Opening {
  TextOptions text;
  FileSets files;
  ChosenTokenizer chosen;
  TextLayout layout;
  TextFields fields;
  std::vector<std::string> notes;
};

bool AsksForLabel(const DataOptions& options) {
  return std::any_of(options.model_inputs.begin(), options.model_inputs.end(),
                     [](const Field& input) { return IsLabelName(input.name); });
}

Result<Opening> Begin(const std::string& name, const std::string& argument,
                      const DataOptions& options) {
  Opening opening;
  RIDGE_ASSIGN_OR_RETURN(opening.text, ParseTextOptions(name, argument, /*json_lines=*/true));
  RIDGE_ASSIGN_OR_RETURN(const auto paths, FindFiles(name, opening.text.path));
  RIDGE_ASSIGN_OR_RETURN(opening.files, SplitFiles(name, paths));
  RIDGE_ASSIGN_OR_RETURN(opening.chosen, ChooseTokenizer(name, opening.text, options));
  RIDGE_ASSIGN_OR_RETURN(opening.layout,
                         LayoutFor(name, opening.text, *opening.chosen.tokenizer, options));
  FieldFinder finder;
  for (const std::string& path : opening.files.train) {
    if (finder.IsDone()) break;
    RIDGE_RETURN_IF_ERROR(finder.Look(path, Skips(options.bad_records)));
  }
  const bool needs_label = AsksForLabel(options) && !opening.layout.language;
  RIDGE_ASSIGN_OR_RETURN(opening.fields,
                         finder.Choose(name, opening.text, needs_label, opening.notes));
  if (opening.layout.language) opening.fields.label.clear();
  opening.layout.labeled = !opening.fields.label.empty();
  return opening;
}

using Labels = LabelColumn::Labels;

Result<Labels> ReadLabels(const Opening& opening, const std::vector<std::string>& paths,
                          const std::vector<std::string>& known, const BadRecordsPtr& bad_records) {
  LabelColumn column;
  LineReader reader(opening.fields, bad_records);
  for (const std::string& path : paths) {
    RIDGE_RETURN_IF_ERROR(reader.ForEach(path, [&](const JsonText& text) {
      const Status added = column.Add(text.label);
      return added.ok() ? added : BadData(Origin(path, text.record), added.message());
    }));
  }
  Result<Labels> labels = column.Finish(known);
  if (labels.ok()) return labels;
  return BadData(paths.front(), labels.status().message());
}

int64_t CountClasses(const Labels& labels) {
  const auto most = std::max_element(labels.values.begin(), labels.values.end());
  if (!labels.names.empty() || most == labels.values.end())
    return static_cast<int64_t>(labels.names.size());
  return *most + 1;
}

// Those of the training files, or of the run.
struct Classes {
  std::vector<std::string> names;  // empty: labels are numbers
  int64_t count = 0;
};

Result<Classes> FindClasses(const std::string& name, const Opening& opening, const Labels& labels,
                            const DataOptions& options) {
  const bool of_run = options.preprocessing != nullptr;
  if (of_run && options.preprocessing->classes.empty() && !labels.names.empty())
    return BadData(name, "its labels are names, those of the run are numbers");
  const Classes classes = {labels.names, CountClasses(labels)};
  if (classes.count > 1 || of_run || labels.values.empty()) return classes;
  return BadData(name, fmt::format("has one class by '{}'; a classifier needs two. hint: "
                                   "label=FIELD behind a comma",
                                   opening.fields.label));
}

std::vector<std::string> KnownClasses(const DataOptions& options) {
  return options.preprocessing == nullptr ? std::vector<std::string>()
                                          : options.preprocessing->classes;
}

class SetOpener {
 public:
  SetOpener(const std::string& name, const Opening& opening, const DataOptions& options)
      : name_(name), opening_(opening), options_(options) {}

  Result<SampleSet> Open(const std::vector<std::string>& paths, const Labels& labels,
                         double hold_out) {
    const Tokenizer& tokenizer = *opening_.chosen.tokenizer;
    TextReader reader(tokenizer, opening_.layout);
    LineReader lines(opening_.fields, options_.bad_records);
    for (const std::string& path : paths) {
      reader.BeginFile(path);
      RIDGE_RETURN_IF_ERROR(lines.ForEach(path, [&](const JsonText& text) {
        reader.Add(text.record, /*label=*/0);
        return Status();
      }));
    }
    empty_ += lines.empty();
    if (opening_.layout.labeled) {
      if (labels.values.size() != static_cast<size_t>(reader.records()))
        return BadData(name_, "has changed while it was read");
      reader.SetLabels(labels.values);
    }
    return FinishTexts(name_, reader, opening_.layout, tokenizer.vocab(), CountClasses(labels),
                       hold_out);
  }

  int64_t empty() const { return empty_; }

 private:
  const std::string& name_;
  const Opening& opening_;
  const DataOptions& options_;
  int64_t empty_ = 0;
};

}  // namespace

Result<DataSplits> OpenJsonLines(const std::string& name, const std::string& argument,
                                 const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opening opening, Begin(name, argument, options));
  SetOpener opener(name, opening, options);
  Labels labels;
  Classes classes;
  if (opening.layout.labeled) {
    RIDGE_ASSIGN_OR_RETURN(labels, ReadLabels(opening, opening.files.train, KnownClasses(options),
                                              options.bad_records));
    RIDGE_ASSIGN_OR_RETURN(classes, FindClasses(name, opening, labels, options));
  }
  DataSplits splits;
  RIDGE_ASSIGN_OR_RETURN(const SampleSet training,
                         opener.Open(opening.files.train, labels, options.hold_out));
  SetTraining(training, splits);
  const std::pair<const std::vector<std::string>&, SourcePtr&> further[] = {
      {opening.files.validation, splits.validation}, {opening.files.test, splits.test}};
  for (const auto& [paths, source] : further) {
    if (paths.empty() || source != nullptr) continue;
    if (opening.layout.labeled) {
      RIDGE_ASSIGN_OR_RETURN(labels,
                             ReadLabels(opening, paths, classes.names, options.bad_records));
      if (labels.names != classes.names) {
        return BadData(paths.front(), "its labels are names, those to train on are numbers");
      }
    }
    RIDGE_ASSIGN_OR_RETURN(const SampleSet set, opener.Open(paths, labels, /*hold_out=*/0));
    source = set.all;
  }
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = classes.names;
  preprocessing->text = opening.chosen.text;
  splits.preprocessing = std::move(preprocessing);
  splits.sizes = SizesOfText(opening.text, *opening.chosen.tokenizer, classes.count);
  splits.notes = std::move(opening.notes);
  if (opener.empty() > 0)
    splits.notes.push_back(fmt::format(
        "{}: {} left out, as {} no text", name,
        opener.empty() == 1 ? "1 record is" : fmt::format("{} records are", opener.empty()),
        opener.empty() == 1 ? "it has" : "they have"));
  for (const auto& notes : {opening.chosen.notes, PackingNotes(name, opening.layout, options)})
    splits.notes.insert(splits.notes.end(), notes.begin(), notes.end());
  return splits;
}

Result<DataFacts> JsonLinesFacts(const std::string& name, const std::string& argument,
                                 const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  DataFacts facts;
  int64_t classes = 0;
  if (opening.layout.labeled) {
    // What is wrong is told on opening: a language model has no use for labels.
    BadRecordsPolicy all;
    all.skip = true;
    const auto lenient = std::make_shared<BadRecords>(all);
    const Result<Labels> labels =
        ReadLabels(opening, opening.files.train, KnownClasses(options), lenient);
    if (labels.ok()) classes = CountClasses(*labels);
  }
  facts.sizes = SizesOfText(opening.text, *opening.chosen.tokenizer, classes);
  if (opening.text.length)
    facts.fields.push_back({"input_ids", {DType::kI64, {*opening.text.length}}});
  return facts;
}

}  // namespace ridge
