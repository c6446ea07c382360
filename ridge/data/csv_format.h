// CsvFormat: how a file writes its table: delimiter, decimal mark, header line.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct CsvFormat {
  char delimiter = ',';
  bool decimal_comma = false;
  bool has_header = false;
  bool header_is_numbers = false;  // the header could be a sample too
  bool header_is_guess = false;    // no column's type tells the first line from the others
};

// What the user says of it; the rest is found in the first lines.
struct CsvFormatChoice {
  std::optional<char> delimiter;
  std::optional<bool> decimal_comma;
  std::optional<bool> has_header;
};

// The delimiter, of tab ; | and comma, is the one that cuts most of the first lines into as many
// cells as the first, and more than one.  Decimals have a comma when the delimiter is another one,
// and some cells are numbers so and none with a point.
//
// The first line is a header when one of its cells is a text above numbers, when it numbers two
// columns or more from 0 ("0,1,2": pandas' names), and, where all columns are texts, when
// none of its cells comes again in its column.
// Fails as CsvReader does, and with kInvalidData for a file without records.
Result<CsvFormat> FindCsvFormat(const std::string& path, const CsvFormatChoice& choice);

// "0,1,2", or ",0,1,2" over row labels.
bool NumbersColumns(const std::vector<std::string>& cells);

}  // namespace ridge
