// Parquet files as data, by a plug-in (container/parquet_plugin.h).
//
//   numbers, booleans, texts    the columns of a table, as those of CSV (csv.h)
//   lists of as many numbers    a field of the column's name, f32[N] or i64[N]
//   bytes that are pictures     `image`, decoded, resized and cropped when it is read; bytes may
//                               lie in a struct, beside their path
//
// The argument is PATTERN and options: of CSV label, drop, category, number and standardize, those
// of pictures, and image=COLUMN.  Rows are counted from 1 in each file.  All is held in memory,
// pictures as their files have them.  Files whose names say train, val and test are the sets.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for an option, kUnsupported without the plug-in, kInvalidData for a
// file; the message has the file, and the row or the row group.
Result<DataSplits> OpenParquet(const std::string& name, const std::string& argument,
                               const DataOptions& options);

// The fields, but an image only when the argument has a size.  Reads the training files.
Result<DataFacts> ParquetFacts(const std::string& name, const std::string& argument,
                               const DataOptions& options);

}  // namespace ridge
