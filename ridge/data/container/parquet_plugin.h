// ParquetFile: a Parquet file, by the plug-in libridge_parquet.so.
//
// The plug-in is looked for when the first file is opened: $RIDGE_PARQUET (its path), then
// ../lib/ridge and the folder of the program, then where the system looks for libraries.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/container/parquet_abi.h"

namespace ridge {

struct ParquetColumn {
  std::string name, type;
  RidgeParquetKind kind = RIDGE_PARQUET_OTHER;
  bool operator==(const ParquetColumn&) const = default;
};

class ParquetFile {
 public:
  // Fails with kUnsupported where there is no plug-in, or one of another version; with kInvalidData
  // for the file: "FILE: reason".
  static Result<ParquetFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<ParquetColumn>& columns() const { return columns_; }
  int32_t row_groups() const { return row_groups_; }
  int64_t rows(int32_t group) const { return api_->rows(file_.get(), group); }

  // Fails with kInvalidData: "FILE: row group 3: reason".
  Status Load(int32_t group);
  // Of the row group that is loaded; valid until the next Load.
  Result<RidgeParquetChunk> Chunk(int32_t column);

 private:
  ParquetFile() = default;
  Status Bad(const std::string& what) const;

  const RidgeParquetApi* api_ = nullptr;
  std::shared_ptr<void> file_;
  std::string path_;
  std::vector<ParquetColumn> columns_;
  int32_t row_groups_ = 0, loaded_ = -1;
};

}  // namespace ridge
