// The first pass learns what the columns are and refuses every bad cell, so that the second, which
// fills memory of exactly the size needed, cannot fail on content.
#include "ridge/data/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "ridge/data/csv_reader.h"
#include "ridge/data/memory_source.h"

namespace ridge {
namespace {

constexpr double kExactIntegers = 0x1p53;

struct Table {
  std::vector<std::string> header;  // empty when the file has none
  int64_t columns = 0;
  int64_t rows = 0;
  int64_t index_column = -1;  // row labels, which are no data
  int64_t label_column = -1;
  bool label_is_named = false;
  bool label_is_integer = true;
  bool header_is_numbers = false;  // which a line of data could be too
};

std::optional<double> ParseNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// "0,1,2": how pandas calls columns that have no names; before them maybe an empty cell, over the
// row labels.  One column alone may well be data.
bool NumbersColumns(const std::vector<std::string>& cells) {
  const size_t first = cells[0].empty() ? 1 : 0;
  for (size_t i = first; i < cells.size(); ++i) {
    if (cells[i] != std::to_string(i - first)) return false;
  }
  return cells.size() > 1;
}

bool IsHeader(const std::vector<std::string>& cells) {
  if (NumbersColumns(cells)) return true;
  for (const std::string& cell : cells) {
    if (!cell.empty() && !ParseNumber(cell)) return true;
  }
  return false;
}

Table TableOf(const std::vector<std::string>& first_record) {
  Table table;
  table.columns = static_cast<int64_t>(first_record.size());
  if (table.columns > 1) table.label_column = table.columns - 1;
  if (!IsHeader(first_record)) return table;
  table.header = first_record;
  table.header_is_numbers = !first_record[0].empty() && NumbersColumns(first_record);
  // As pandas and R write row labels, and as pandas calls them when it reads that again.
  const bool has_index = first_record[0].empty() || first_record[0] == "Unnamed: 0";
  if (has_index && table.columns > 1) table.index_column = 0;
  if (table.index_column == 0 && table.columns == 2) table.label_column = -1;
  for (int64_t i = table.index_column + 1; i < table.columns; ++i) {
    std::string name = first_record[static_cast<size_t>(i)];
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name != "label" && name != "target" && name != "y") continue;
    table.label_column = i;
    table.label_is_named = true;
    break;
  }
  return table;
}

Status BadCell(const std::string& path, int64_t line, const Table& table, int64_t column,
               const std::string& what) {
  const std::string title =
      table.header.empty() ? "" : fmt::format(" ('{}')", table.header[static_cast<size_t>(column)]);
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}:{}: column {}{}: {}", path, line, column + 1, title, what));
}

Result<double> ParseCell(const std::string& path, int64_t line, const Table& table, int64_t column,
                         const std::string& cell) {
  if (cell.empty()) return BadCell(path, line, table, column, "is empty, should be a number");
  const auto value = ParseNumber(cell);
  if (!value) return BadCell(path, line, table, column, fmt::format("'{}' is not a number", cell));
  if (!std::isfinite(*value))
    return BadCell(path, line, table, column, fmt::format("'{}' is not a finite number", cell));
  if (std::abs(*value) > std::numeric_limits<float>::max())
    return BadCell(path, line, table, column, fmt::format("'{}' is too large for f32", cell));
  return *value;
}

// Calls row(values) for each record of numbers.  `table` is empty on the first pass.
template <typename Row>
Status ForEachRow(const std::string& path, Table& table, const Row& row) {
  RIDGE_ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path));
  std::vector<std::string> cells;
  std::vector<double> values;
  for (bool is_first = true;; is_first = false) {
    RIDGE_ASSIGN_OR_RETURN(const bool more, reader.Next(cells));
    if (!more) return Status();
    if (is_first && table.columns == 0) table = TableOf(cells);
    if (is_first && !table.header.empty()) continue;
    if (static_cast<int64_t>(cells.size()) != table.columns) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}:{}: has {} cells, the first line has {}", path, reader.line(),
                                cells.size(), table.columns));
    }
    values.clear();
    for (int64_t i = 0; i < table.columns; ++i) {
      Result<double> value = 0.0;
      if (i != table.index_column)
        value = ParseCell(path, reader.line(), table, i, cells[static_cast<size_t>(i)]);
      if (!value.ok()) return value.status();
      values.push_back(*value);
    }
    row(values);
  }
}

Result<Table> Survey(const std::string& path) {
  Table table;
  RIDGE_RETURN_IF_ERROR(ForEachRow(path, table, [&](const std::vector<double>& values) {
    ++table.rows;
    if (table.label_column < 0) return;
    const double label = values[static_cast<size_t>(table.label_column)];
    if (label != std::floor(label) || std::abs(label) > kExactIntegers)
      table.label_is_integer = false;
  }));
  if (table.columns == 0) return Status(ErrorCode::kInvalidData, path + ": is empty");
  if (table.rows == 0) {
    return Status(ErrorCode::kInvalidData,
                  path + ": has a header line and 0 samples, at least 1 is needed");
  }
  // An unnamed last column with fractions is a feature like the others.
  if (!table.label_is_integer && !table.label_is_named) table.label_column = -1;
  return table;
}

Result<std::vector<NamedTensor>> MakeFields(const std::string& path, const Table& table) {
  std::vector<NamedTensor> fields;
  const int64_t features =
      table.columns - (table.label_column >= 0 ? 1 : 0) - (table.index_column >= 0 ? 1 : 0);
  if (features > 0) {
    RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(path, {DType::kF32, {table.rows, features}}));
    fields.emplace_back("features", std::move(tensor));
  }
  if (table.label_column < 0) return fields;
  const DType dtype = table.label_is_integer ? DType::kI64 : DType::kF32;
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(path, {dtype, {table.rows}}));
  fields.emplace_back("label", std::move(tensor));
  return fields;
}

Result<std::vector<NamedTensor>> Load(const std::string& path, Table table) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> fields, MakeFields(path, table));
  const int64_t rows = table.rows;
  Tensor* label = table.label_column < 0 ? nullptr : &fields.back().second;
  float* feature = fields.front().second.as_mutable<float>();
  int64_t row = 0;
  RIDGE_RETURN_IF_ERROR(ForEachRow(path, table, [&](const std::vector<double>& values) {
    if (row == rows) return;  // the file grew since it was counted
    for (int64_t i = 0; i < table.columns; ++i) {
      const double value = values[static_cast<size_t>(i)];
      if (i == table.label_column)
        StoreFromDouble(label->type().dtype, label->mutable_data(), row, value);
      else if (i != table.index_column)
        *feature++ = static_cast<float>(value);
    }
    ++row;
  }));
  if (row == rows) return fields;
  return Status(ErrorCode::kInvalidData, path + ": became shorter while it was read");
}

std::string FirstNames(const std::vector<std::string>& header) {
  constexpr size_t kMost = 4;
  const auto end = header.begin() + static_cast<int64_t>(std::min(header.size(), kMost));
  return fmt::format("{}{}", fmt::join(header.begin(), end, ","),
                     header.size() > kMost ? ",..." : "");
}

std::vector<std::string> Notes(const std::string& name, const Table& table) {
  std::vector<std::string> notes;
  if (table.header_is_numbers) {
    notes.push_back(
        fmt::format("{}: the first line, {}, numbers the columns: it is read as their "
                    "names, not as a sample. hint: if it is one, put a line of names "
                    "above it",
                    name, FirstNames(table.header)));
  }
  if (table.index_column >= 0) {
    notes.push_back(
        fmt::format("{}: column 1 has no name: it is taken for row labels and left "
                    "out. hint: give it a name if it is data",
                    name));
  }
  return notes;
}

}  // namespace

Result<DataSplits> OpenCsv(const std::string& name, const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const Table table, Survey(path));
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> fields, Load(path, table));
  DataSplits splits;
  splits.notes = Notes(name, table);
  RIDGE_ASSIGN_OR_RETURN(splits.train, MemorySource::Create(name, std::move(fields)));
  return splits;
}

}  // namespace ridge
