#include "ridge/data/csv_format.h"

#include <algorithm>

#include "ridge/data/csv_cells.h"
#include "ridge/data/csv_reader.h"

namespace ridge {
namespace {

using Records = std::vector<std::vector<std::string>>;

constexpr size_t kHeadRecords = 50;
constexpr size_t kHeadCells = 20'000;  // two records are read in any case
constexpr char kDelimiters[] = {'\t', ';', '|', ','};

// The first records.
Result<Records> ReadHead(const std::string& path, char delimiter) {
  RIDGE_ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path, delimiter));
  Records head;
  size_t cells = 0;
  while (head.size() < kHeadRecords && (head.size() < 2 || cells < kHeadCells)) {
    std::vector<std::string> record;
    RIDGE_ASSIGN_OR_RETURN(const bool more, reader.Next(record));
    if (!more) break;
    cells += record.size();
    head.push_back(std::move(record));
  }
  return head;
}

// Records with as many cells as the first; 0 when that has one.
size_t Agreeing(const Records& head) {
  if (head.empty() || head[0].size() < 2) return 0;
  return static_cast<size_t>(std::count_if(head.begin(), head.end(), [&](const auto& record) {
    return record.size() == head[0].size();
  }));
}

char FindDelimiter(const std::string& path) {
  char best = ',';
  size_t most = 0;
  for (char delimiter : kDelimiters) {
    const Result<Records> head = ReadHead(path, delimiter);
    if (!head.ok()) continue;  // quotes that end within what this one takes for a cell
    const size_t agreeing = Agreeing(*head);
    if (agreeing > most) best = delimiter;
    most = std::max(most, agreeing);
  }
  return best;
}

bool HasDecimalComma(const Records& head) {
  bool comma = false;
  for (const std::vector<std::string>& record : head) {
    for (const std::string& cell : record) {
      if (cell.find('.') != std::string::npos && ParseNumber(cell)) return false;
      comma = comma || (cell.find(',') != std::string::npos && ParseNumber(cell, true));
    }
  }
  return comma;
}

// What column `i` says of the first record.
struct Evidence {
  bool for_header = false;      // a text above numbers
  bool against_header = false;  // a number above numbers
  bool comes_again = false;     // its cell stands in the column once more
};

Evidence ColumnEvidence(const Records& head, size_t i, bool decimal_comma) {
  Evidence evidence;
  const std::string& first = head[0][i];
  int64_t numbers = 0, texts = 0;
  for (size_t row = 1; row < head.size(); ++row) {
    if (i >= head[row].size() || IsMissing(head[row][i])) continue;
    ++(ParseNumber(head[row][i], decimal_comma) ? numbers : texts);
    evidence.comes_again = evidence.comes_again || head[row][i] == first;
  }
  if (IsMissing(first)) return {};
  const bool is_number = ParseNumber(first, decimal_comma).has_value();
  // One bad cell among numbers makes no column of texts.
  const bool column_of_numbers = numbers > texts;
  evidence.for_header = column_of_numbers && !is_number;
  evidence.against_header = column_of_numbers && is_number;
  return evidence;
}

bool HasText(const std::vector<std::string>& record, bool decimal_comma) {
  return std::any_of(record.begin(), record.end(), [&](const std::string& cell) {
    return !cell.empty() && !ParseNumber(cell, decimal_comma);
  });
}

void FindHeader(const Records& head, CsvFormat& format) {
  const std::vector<std::string>& first = head[0];
  format.header_is_numbers = NumbersColumns(first) && !first[0].empty();
  format.has_header = NumbersColumns(first);
  if (format.has_header) return;
  if (head.size() == 1) {
    format.has_header = HasText(first, format.decimal_comma);
    return;
  }
  Evidence any;
  for (size_t i = 0; i < first.size(); ++i) {
    const Evidence one = ColumnEvidence(head, i, format.decimal_comma);
    any.for_header = any.for_header || one.for_header;
    any.against_header = any.against_header || one.against_header;
    any.comes_again = any.comes_again || one.comes_again;
  }
  const bool undecided = !any.for_header && !any.against_header;
  format.has_header = any.for_header || (undecided && !any.comes_again);
  format.header_is_guess = undecided;
}

}  // namespace

bool NumbersColumns(const std::vector<std::string>& cells) {
  const size_t first = cells[0].empty() ? 1 : 0;
  for (size_t i = first; i < cells.size(); ++i) {
    if (cells[i] != std::to_string(i - first)) return false;
  }
  return cells.size() > 1;
}

Result<CsvFormat> FindCsvFormat(const std::string& path, const CsvFormatChoice& choice) {
  CsvFormat format;
  RIDGE_RETURN_IF_ERROR(CsvReader::Open(path).status());
  format.delimiter = choice.delimiter ? *choice.delimiter : FindDelimiter(path);
  RIDGE_ASSIGN_OR_RETURN(const Records head, ReadHead(path, format.delimiter));
  if (head.empty()) return Status(ErrorCode::kInvalidData, path + ": is empty");
  format.decimal_comma =
      choice.decimal_comma.value_or(format.delimiter != ',' && HasDecimalComma(head));
  FindHeader(head, format);
  if (!choice.has_header) return format;
  format.has_header = *choice.has_header;
  format.header_is_numbers = format.header_is_guess = false;
  return format;
}

}  // namespace ridge
