#include "ridge/data/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ridge/data/csv_reader.h"

namespace ridge {
namespace {

// As pandas names a second "a": "a.1".
std::string FreeName(const std::string& name, const std::set<std::string>& taken) {
  std::string free = name;
  for (int i = 1; taken.contains(free); ++i) free = fmt::format("{}.{}", name, i);
  return free;
}

// A column without a name is called by its number.
std::vector<std::string> NamesOf(const std::vector<std::string>& first, bool has_header) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (size_t i = 0; i < first.size(); ++i) {
    const bool named = has_header && !first[i].empty();
    names.push_back(FreeName(named ? first[i] : std::to_string(i + 1), taken));
    taken.insert(names.back());
  }
  return names;
}

}  // namespace

Result<CsvTable> CsvTable::Open(const std::string& path, const CsvFormatChoice& choice) {
  CsvTable table;
  table.path = path;
  RIDGE_ASSIGN_OR_RETURN(table.format, FindCsvFormat(path, choice));
  RIDGE_ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path, table.format.delimiter));
  std::vector<std::string> first;
  RIDGE_RETURN_IF_ERROR(reader.Next(first).status());
  table.names = NamesOf(first, table.format.has_header);
  const bool unnamed = first[0].empty() || first[0] == "Unnamed: 0";
  if (table.format.has_header && unnamed && first.size() > 1) table.index_column = 0;
  return table;
}

int64_t CsvTable::Find(const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : found - names.begin();
}

std::string CsvTable::FirstNames() const {
  constexpr size_t kMost = 4;
  const auto end = names.begin() + static_cast<int64_t>(std::min(names.size(), kMost));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ","),
                     names.size() > kMost ? ",..." : "");
}

std::vector<std::string> CsvTable::FormatNotes() const {
  std::vector<std::string> notes;
  if (format.header_is_numbers) {
    notes.push_back(
        fmt::format("the first line, {}, numbers the columns: it is read as their names, not as a "
                    "sample. hint: if it is one, add ,header=no",
                    FirstNames()));
  }
  if (format.header_is_guess) {
    notes.push_back(fmt::format("the first line is read as {}. hint: if it is not, add ,header={}",
                                format.has_header ? "the columns' names" : "a sample",
                                format.has_header ? "no" : "yes"));
  }
  if (format.decimal_comma) notes.push_back("numbers are read with a decimal comma");
  if (index_column >= 0) {
    notes.push_back(
        "column 1 has no name: it is taken for row labels and left out. hint: give it a name if "
        "it is data");
  }
  return notes;
}

Status CsvTable::ForEachRow(const RowVisitor& visit) const {
  if (rows) return rows(visit);
  RIDGE_ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path, format.delimiter));
  std::vector<std::string> cells;
  for (bool is_first = true;; is_first = false) {
    RIDGE_ASSIGN_OR_RETURN(const bool more, reader.Next(cells));
    if (!more) return Status();
    if (is_first && format.has_header) continue;
    if (cells.size() != names.size()) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}:{}: has {} cells, the first line has {}", path, reader.line(),
                                cells.size(), names.size()));
    }
    RIDGE_RETURN_IF_ERROR(visit(cells, reader.line()));
  }
}

Status CsvTable::BadCell(int64_t line, int64_t column, const std::string& what) const {
  const std::string title =
      format.has_header ? fmt::format(" ('{}')", names[static_cast<size_t>(column)]) : "";
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}:{}: column {}{}: {}", path, line, column + 1, title, what));
}

}  // namespace ridge
