// CsvOptions: what a user says of a table behind its path: "table.csv,label=species,drop=id".
#pragma once
#include <string>
#include <vector>

#include "ridge/data/csv_format.h"

namespace ridge {

struct CsvOptions {
  std::string path;
  CsvFormatChoice format;             // delimiter=comma|semicolon|tab|pipe, decimal=point|comma,
                                      // header=yes|no
  std::string label;                  // a column; "none": no column; "": it is found
  std::vector<std::string> drop;      // columns to leave out
  std::vector<std::string> category;  // columns whose cells are words, numbers too
  std::vector<std::string> number;    // columns that hold nothing but numbers
  bool standardize = true;
};

// One option.  Fails with kInvalidArgument for a wrong value.
Status TakeCsvOption(const std::string& spec, const std::string& key, const std::string& value,
                     CsvOptions& options);

// Fails with kInvalidArgument for an unknown option or value; `spec` is for messages.
Result<CsvOptions> ParseCsvOptions(const std::string& spec, const std::string& argument);

}  // namespace ridge
