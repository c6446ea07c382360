// Tables as text: RFC 4180 with any of four delimiters, plain or gzip.
//
// The columns become one field `features` f32[...] (csv_survey.h says how) and a field `label`:
// i64[] for classes and integers, f32[] for fractions.  The label is the column that the user
// names, else one called label, target, class, y or species, else the last of several unless it
// holds fractions, dates or free text.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// `argument` is the spec `name` behind "csv:": a file, and options (csv_options.h).  Of `options`
// it takes hold_out, preprocessing and plain_tables.
// Reads the file twice, on rare tables three times: to find what the columns are, and into memory
// of the right size.
// Fails with kInvalidData; the message has the line (counted from 1) and the column.
Result<DataSplits> OpenCsv(const std::string& name, const std::string& argument,
                           const DataOptions& options = {});

}  // namespace ridge
