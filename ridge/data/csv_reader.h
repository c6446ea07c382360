// CsvReader: the records of a CSV file, cell by cell as text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/data/byte_stream.h"

namespace ridge {

class CsvReader {
 public:
  static Result<CsvReader> Open(const std::string& path, char delimiter = ',');

  // The next record that is not an empty line; false at the end of the file.  Cells are UTF-8,
  // without quotes and without blanks around them.  A line ends with LF, CR LF or CR.
  // Fails with kInvalidData on a quote that is not closed, text after a closing quote, a cell of
  // more than 65536 characters, or more than 2^20 cells.
  Result<bool> Next(std::vector<std::string>& cells);

  int64_t line() const { return record_line_; }  // where the record begins, from 1

 private:
  CsvReader(std::unique_ptr<ByteStream> stream, char delimiter)
      : stream_(std::move(stream)), delimiter_(delimiter) {}
  bool IsBlank(int c) const { return c == ' ' || (c == '\t' && delimiter_ != '\t'); }
  Result<int> Peek();  // -1 at the end
  Result<bool> ReadRecord(std::vector<std::string>& cells);
  Status ReadCell(std::string& cell);
  Status ReadQuoted(std::string& cell);
  Status ReadPlain(std::string& cell);
  Status AddTo(std::string& cell, int c);
  Status EndLine();
  Status Bad(const std::string& what) const;

  std::unique_ptr<ByteStream> stream_;
  char delimiter_;
  std::string buffer_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t record_line_ = 1;
};

}  // namespace ridge
