// Tables of numbers as text: RFC 4180, comma-separated, plain or gzip.
//
// The first line is the header when a cell of it is no number, and when it numbers two columns or
// more from 0 ("0,1,2": pandas' names), which a note tells, as a sample could say the same.  A
// first column whose name is empty, or pandas' "Unnamed: 0", holds row labels: it is left out, and
// a note tells.  The column named label, target or y, else the last of several, is the label if it
// holds integers: field `label` i64[].  A named column with fractions is `label` f32[].  All others
// are one field `features` f32[columns].
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Reads the file twice: once to check and count, once into memory of the right size.
// Fails with kInvalidData; the message has the line (counted from 1) and the column.
Result<DataSplits> OpenCsv(const std::string& name, const std::string& path);

}  // namespace ridge
