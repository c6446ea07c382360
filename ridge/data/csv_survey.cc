// One pass gathers facts of every column; a second one is needed when the label was only guessed
// and rows turn out to lack it, and on tables so small that nobody would be held out.
#include "ridge/data/csv_survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ridge/core/units.h"
#include "ridge/data/csv_cells.h"

namespace ridge {
namespace {

constexpr double kExactIntegers = 0x1p53;
constexpr size_t kMostValues = 100;    // of a category
constexpr size_t kFewValues = 10;      // a category even where each row has its own
constexpr size_t kMostClasses = 1000;  // of a label of words
constexpr int64_t kSurelyNumbers = 1000;

// Mean and variance so far (Welford, 1962).
struct Moments {
  int64_t count = 0;
  double mean = 0, sum_of_squares = 0;

  void Add(double x) {
    ++count;
    const double from_old = x - mean;
    mean += from_old / static_cast<double>(count);
    sum_of_squares += from_old * (x - mean);
  }
  double std() const {
    return count == 0 ? 0 : std::sqrt(sum_of_squares / static_cast<double>(count));
  }
};

struct ColumnFacts {
  int64_t numbers = 0, words = 0, booleans = 0, dates = 0, missing = 0;  // booleans are words
  bool integers = true, increasing = true;
  double last = -std::numeric_limits<double>::infinity();
  Moments training;  // of numbers and booleans
  std::string first_word;
  int64_t first_word_line = 0;
  bool keeps_values = true;
  std::set<std::string> values;  // up to one more than allowed

  // More than kMostValues, or a value of its own in most rows.
  bool IsFreeText(int64_t rows) const {
    const size_t count = values.size();
    return count > kMostValues || (count > kFewValues && 2 * static_cast<int64_t>(count) > rows);
  }
  // A few words among numbers: in a column that began with kSurelyNumbers, or nine tenths of which
  // are numbers.
  bool HasStrayWords() const { return values.empty() || numbers >= 9 * words; }
};

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

class Surveyor {
 public:
  Surveyor(const std::string& name, const CsvTable& table, const CsvOptions& options,
           const ContentSplit& split, bool plain)
      : name_(name), table_(table), options_(options), plain_(plain), hasher_(table, options) {
    survey_.split = split;
    survey_.preprocessing.table.emplace();
    survey_.preprocessing.table->standardize = options.standardize && !plain;
    for (size_t i = 0; i < table.names.size(); ++i) {
      leaves_out_.push_back(static_cast<int64_t>(i) == table.index_column ||
                            Contains(options.drop, table.names[i]));
    }
  }

  Result<CsvSurvey> Run();

 private:
  Status CheckColumns() const;
  void FindLabel();
  Status CountRows();
  Status AddRow(const std::vector<std::string>& cells, int64_t line);
  Status AddCell(size_t column, const std::string& cell, int64_t line, bool training);
  void KeepValue(size_t column, const std::string& cell);
  Status AddNumber(size_t column, double value, const std::string& cell, int64_t line,
                   bool training);
  static void AddWord(ColumnFacts& facts, const std::string& cell, int64_t line, bool training);
  bool GuessedLabelIsNone() const;
  Status NoSamples() const;
  Status DescribeLabel();
  Status DescribeColumns();
  Result<std::optional<TableColumn>> DescribeColumn(size_t column);
  Status StrayWord(size_t column) const;
  bool NumbersRows(size_t column) const;
  std::optional<TableColumn> LeaveOut(size_t column, const std::string& why);
  void NoteLeftOut();
  void Note(const std::string& text) { survey_.notes.push_back(text); }

  const std::string& name_;
  const CsvTable& table_;
  const CsvOptions& options_;
  const bool plain_;
  const RowHasher hasher_;
  std::vector<bool> leaves_out_;  // row labels and dropped columns
  std::vector<ColumnFacts> facts_;
  int64_t label_ = -1;
  bool label_is_guess_ = false;
  bool label_is_sure_ = false;  // rows without it are left out
  int64_t unlabeled_ = 0;
  std::vector<std::string> left_out_;
  CsvSurvey survey_;
};

Result<CsvSurvey> Surveyor::Run() {
  RIDGE_RETURN_IF_ERROR(CheckColumns());
  FindLabel();
  for (bool again = true; again;) {
    RIDGE_RETURN_IF_ERROR(CountRows());
    if (GuessedLabelIsNone()) label_ = -1;
    again = label_ >= 0 && !label_is_sure_ && facts_[static_cast<size_t>(label_)].missing > 0;
    label_is_sure_ = true;
    RIDGE_ASSIGN_OR_RETURN(const bool settled, survey_.split.Settle(table_.path));
    again = again || !settled;
  }
  if (survey_.split.size() == 0) return NoSamples();
  RIDGE_RETURN_IF_ERROR(DescribeLabel());
  RIDGE_RETURN_IF_ERROR(DescribeColumns());
  NoteLeftOut();
  return survey_;
}

// The columns that options name are there.
Status Surveyor::CheckColumns() const {
  std::vector<std::string> named = options_.drop;
  named.insert(named.end(), options_.category.begin(), options_.category.end());
  named.insert(named.end(), options_.number.begin(), options_.number.end());
  if (!options_.label.empty() && options_.label != "none") named.push_back(options_.label);
  for (const std::string& column : named) {
    if (table_.Find(column) >= 0) continue;
    return InvalidArgument(
        fmt::format("data '{}': no column '{}' (it has: {})", name_, column, table_.FirstNames()));
  }
  return Status();
}

// By the user, by its name, else the last of several columns, which is only a guess.
void Surveyor::FindLabel() {
  if (options_.label == "none" && table_.Find("none") < 0) return;
  if (!options_.label.empty()) {
    label_ = table_.Find(options_.label);
    label_is_sure_ = true;
    return;
  }
  for (const std::string usual : {"label", "target", "class", "y", "species"}) {
    if (plain_ && (usual == "class" || usual == "species")) continue;
    for (size_t i = 0; i < table_.names.size() && label_ < 0; ++i) {
      if (!leaves_out_[i] && table_.format.has_header && Lower(table_.names[i]) == usual)
        label_ = static_cast<int64_t>(i);
    }
  }
  label_is_sure_ = label_ >= 0;
  int64_t columns = 0;
  for (size_t i = 0; i < table_.names.size(); ++i) {
    if (leaves_out_[i]) continue;
    ++columns;
    if (!label_is_sure_) label_ = static_cast<int64_t>(i);
  }
  label_is_guess_ = !label_is_sure_;
  if (label_is_guess_ && columns < 2) label_ = -1;
}

Status Surveyor::CountRows() {
  facts_.assign(table_.names.size(), ColumnFacts());
  unlabeled_ = 0;
  survey_.split = survey_.split.Uncounted();
  return table_.ForEachRow(
      [&](const std::vector<std::string>& cells, int64_t line) { return AddRow(cells, line); });
}

Status Surveyor::AddRow(const std::vector<std::string>& cells, int64_t line) {
  if (label_ >= 0 && label_is_sure_ && IsMissing(cells[static_cast<size_t>(label_)])) {
    ++unlabeled_;
    return Status();
  }
  const bool held_out = survey_.split.Count(hasher_(cells));
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (!leaves_out_[i]) RIDGE_RETURN_IF_ERROR(AddCell(i, cells[i], line, !held_out));
  }
  return Status();
}

Status Surveyor::AddCell(size_t column, const std::string& cell, int64_t line, bool training) {
  ColumnFacts& facts = facts_[column];
  if (IsMissing(cell)) {
    ++facts.missing;
    return Status();
  }
  KeepValue(column, cell);
  const std::optional<double> value = ParseNumber(cell, table_.format.decimal_comma);
  if (value) return AddNumber(column, *value, cell, line, training);
  AddWord(facts, cell, line, training);
  return Status();
}

void Surveyor::KeepValue(size_t column, const std::string& cell) {
  ColumnFacts& facts = facts_[column];
  if (!facts.keeps_values) return;
  const bool surely_numbers = facts.words == 0 && facts.numbers >= kSurelyNumbers &&
                              !Contains(options_.category, table_.names[column]);
  if (surely_numbers) {
    facts.values.clear();
    facts.keeps_values = false;
    return;
  }
  const size_t most = static_cast<int64_t>(column) == label_ ? kMostClasses : kMostValues;
  facts.values.insert(cell);
  facts.keeps_values = facts.values.size() <= most;
}

Status Surveyor::AddNumber(size_t column, double value, const std::string& cell, int64_t line,
                           bool training) {
  RIDGE_RETURN_IF_ERROR(CheckNumber(table_, line, static_cast<int64_t>(column), cell, value));
  ColumnFacts& facts = facts_[column];
  ++facts.numbers;
  facts.integers =
      facts.integers && value == std::floor(value) && std::abs(value) <= kExactIntegers;
  facts.increasing = facts.increasing && value > facts.last;
  facts.last = value;
  if (training) facts.training.Add(value);
  return Status();
}

void Surveyor::AddWord(ColumnFacts& facts, const std::string& cell, int64_t line, bool training) {
  if (facts.words++ == 0) {
    facts.first_word = cell;
    facts.first_word_line = line;
  }
  if (const std::optional<double> value = ParseBoolean(cell)) {
    ++facts.booleans;
    if (training) facts.training.Add(*value);
  }
  if (IsDate(cell)) ++facts.dates;
}

// A last column of fractions, of dates or of free text is a feature like the others.
bool Surveyor::GuessedLabelIsNone() const {
  if (!label_is_guess_ || label_ < 0) return false;
  const ColumnFacts& facts = facts_[static_cast<size_t>(label_)];
  if (facts.words == 0) return facts.numbers == 0 || !facts.integers;
  return facts.dates == facts.words || facts.IsFreeText(survey_.split.size());
}

Status Surveyor::NoSamples() const {
  if (unlabeled_ > 0) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: no row has a label: column {} ('{}') is empty", table_.path,
                              label_ + 1, table_.names[static_cast<size_t>(label_)]));
  }
  return Status(ErrorCode::kInvalidData,
                table_.path + ": has a header line and 0 samples, at least 1 is needed");
}

Status Surveyor::DescribeLabel() {
  if (label_ < 0) return Status();
  const auto column = static_cast<size_t>(label_);
  const ColumnFacts& facts = facts_[column];
  TableLabel label{table_.names[column], LabelKind::kClass};
  const bool is_category = Contains(options_.category, label.name);
  const bool words = facts.words > 0 || is_category;
  if (!words) label.kind = facts.integers ? LabelKind::kInteger : LabelKind::kNumber;
  if (words) {
    if (facts.words > 0 && !is_category && facts.HasStrayWords()) return StrayWord(column);
    if (facts.values.size() > kMostClasses) {
      return Status(
          ErrorCode::kInvalidData,
          fmt::format("{}: the label, column {} ('{}'), has more than {} different texts: no "
                      "classes. hint: {},label=NAME names another column",
                      table_.path, column + 1, label.name, kMostClasses, name_));
    }
    survey_.preprocessing.classes.assign(facts.values.begin(), facts.values.end());
  }
  if (label_is_guess_ && table_.format.has_header) {
    Note(fmt::format("the label is the last column, '{}'. hint: {},label=NAME names another",
                     label.name, name_));
  }
  if (unlabeled_ > 0) {
    Note(fmt::format("{} without '{}': left out", FormatCountOf(unlabeled_, "row"), label.name));
  }
  survey_.preprocessing.table->label = std::move(label);
  return Status();
}

Status Surveyor::DescribeColumns() {
  std::vector<TableColumn>& columns = survey_.preprocessing.table->columns;
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (leaves_out_[i] || static_cast<int64_t>(i) == label_) continue;
    RIDGE_ASSIGN_OR_RETURN(std::optional<TableColumn> column, DescribeColumn(i));
    if (column) columns.push_back(std::move(*column));
  }
  if (!columns.empty() || label_ >= 0) return Status();
  return Status(ErrorCode::kInvalidData, fmt::format("{}: no column is a feature or a label; {}",
                                                     table_.path, fmt::join(left_out_, ", ")));
}

// Nothing for a column that is left out.
Result<std::optional<TableColumn>> Surveyor::DescribeColumn(size_t column) {
  const ColumnFacts& facts = facts_[column];
  TableColumn described;
  described.name = table_.names[column];
  described.mean = facts.training.mean;
  described.std = facts.training.std();
  described.missing = facts.missing > 0;
  const bool is_category = Contains(options_.category, described.name);
  if (facts.words == 0 && facts.numbers == 0) return LeaveOut(column, "is empty");
  if (facts.words == 0 && !is_category)
    return NumbersRows(column) ? LeaveOut(column, "numbers the rows") : std::optional(described);
  if (Contains(options_.number, described.name)) return StrayWord(column);
  described.kind = ColumnKind::kBoolean;
  if (facts.booleans == facts.words && facts.numbers == 0 && !is_category)
    return std::optional(described);
  if (!is_category) {
    if (facts.dates == facts.words && facts.numbers == 0) return LeaveOut(column, "holds dates");
    if (facts.HasStrayWords()) return StrayWord(column);
    if (facts.IsFreeText(survey_.split.size())) {
      return LeaveOut(column,
                      fmt::format("has {} different texts",
                                  facts.keeps_values ? std::to_string(facts.values.size())
                                                     : fmt::format("more than {}", kMostValues)));
    }
  }
  if (facts.values.size() > kMostValues) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: column {} ('{}') has more than {} different values: no category",
                              table_.path, column + 1, described.name, kMostValues));
  }
  described.kind = ColumnKind::kCategory;
  described.mean = described.std = 0;
  described.values.assign(facts.values.begin(), facts.values.end());
  return std::optional(described);
}

Status Surveyor::StrayWord(size_t column) const {
  const ColumnFacts& facts = facts_[column];
  const std::string& title = table_.names[column];
  return table_.BadCell(
      facts.first_word_line, static_cast<int64_t>(column),
      fmt::format("'{}' is not a number; {} of {} cells of this column are. hint: an empty cell "
                  "is a missing value; {},category={} takes the column for words, {},drop={} "
                  "leaves it out",
                  facts.first_word, facts.numbers, facts.numbers + facts.words, name_, title, name_,
                  title));
}

// A column called id, index or ...Id whose whole numbers rise from row to row.
bool Surveyor::NumbersRows(size_t column) const {
  const ColumnFacts& facts = facts_[column];
  const std::string name = Lower(table_.names[column]);
  const bool named = name == "index" || name.ends_with("id");
  return !plain_ && named && facts.integers && facts.increasing && facts.missing == 0 &&
         !Contains(options_.number, table_.names[column]);
}

std::optional<TableColumn> Surveyor::LeaveOut(size_t column, const std::string& why) {
  left_out_.push_back(fmt::format("'{}' {}", table_.names[column], why));
  return std::nullopt;
}

void Surveyor::NoteLeftOut() {
  constexpr size_t kMost = 6;
  if (left_out_.empty()) return;
  const size_t shown = std::min(left_out_.size(), kMost);
  const auto end = left_out_.begin() + static_cast<int64_t>(shown);
  const std::string more =
      shown < left_out_.size() ? fmt::format(" and {} more", left_out_.size() - shown) : "";
  Note(fmt::format("left out: {}{}. hint: {},category=NAME or ,number=NAME keeps a column",
                   fmt::join(left_out_.begin(), end, ", "), more, name_));
}

}  // namespace

Status CheckNumber(const CsvTable& table, int64_t line, int64_t column, const std::string& cell,
                   double value) {
  if (!std::isfinite(value))
    return table.BadCell(line, column, fmt::format("'{}' is not a finite number", cell));
  if (std::abs(value) > std::numeric_limits<float>::max())
    return table.BadCell(line, column, fmt::format("'{}' is too large for f32", cell));
  return Status();
}

RowHasher::RowHasher(const CsvTable& table, const CsvOptions& options) {
  for (size_t i = 0; i < table.names.size(); ++i) {
    if (static_cast<int64_t>(i) != table.index_column && !Contains(options.drop, table.names[i]))
      columns_.push_back(i);
  }
  if (table.has_hash_cell) columns_.push_back(table.names.size());
}

uint64_t RowHasher::operator()(const std::vector<std::string>& cells) const {
  ContentHash hash;
  for (size_t column : columns_) hash.Add(cells[column]);
  return hash.value();
}

Result<CsvSurvey> SurveyCsv(const std::string& name, const CsvTable& table,
                            const CsvOptions& options, const ContentSplit& split, bool plain) {
  return Surveyor(name, table, options, split, plain).Run();
}

}  // namespace ridge
