// CsvReader: the records of a CSV file, cell by cell as text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/data/byte_stream.h"

namespace ridge {

class CsvReader {
 public:
  static Result<CsvReader> Open(const std::string& path);

  // The next record that is not an empty line; false at the end of the file.  Cells are without
  // quotes and without blanks around them.  A line ends with LF, CR LF or CR.
  // Fails with kInvalidData on a quote that is not closed, text after a closing quote, or a cell of
  // more than 4096 characters.
  Result<bool> Next(std::vector<std::string>& cells);

  int64_t line() const { return record_line_; }  // where the record begins, from 1

 private:
  explicit CsvReader(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}
  Result<int> Peek();  // -1 at the end
  Result<bool> ReadRecord(std::vector<std::string>& cells);
  Status ReadCell(std::string& cell);
  Status ReadQuoted(std::string& cell);
  Status ReadPlain(std::string& cell);
  Status AddTo(std::string& cell, int c);
  Status EndLine();
  Status Bad(const std::string& what) const;

  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t record_line_ = 1;
};

}  // namespace ridge
