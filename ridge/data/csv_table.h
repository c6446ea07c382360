// CsvTable: a file as named columns, and its rows in order.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/data/csv_format.h"

namespace ridge {

struct CsvTable {
  std::string path;
  CsvFormat format;
  std::vector<std::string> names;  // one a column, all different; "1", "2", ... without a header
  // The first column when its name is empty, or pandas' "Unnamed: 0": row labels; else -1.
  int64_t index_column = -1;
  // A table that is no CSV file: where its rows come from, and whether each has one more cell that
  // is no column's, of what tells equal rows apart.
  std::function<Status(
      const std::function<Status(const std::vector<std::string>& cells, int64_t line)>& visit)>
      rows;
  bool has_hash_cell = false;

  // Fails as FindCsvFormat does.
  static Result<CsvTable> Open(const std::string& path, const CsvFormatChoice& choice);

  int64_t Find(const std::string& name) const;  // -1 when there is none
  std::string FirstNames() const;               // "a,b,c,d,..."

  // What of its form was guessed and could be otherwise; a sentence each.
  std::vector<std::string> FormatNotes() const;

  using RowVisitor = std::function<Status(const std::vector<std::string>& cells, int64_t line)>;
  // Stops at the first failure.  Fails with kInvalidData at a line of another number of cells.
  Status ForEachRow(const RowVisitor& visit) const;

  Status BadCell(int64_t line, int64_t column, const std::string& what) const;
};

}  // namespace ridge
