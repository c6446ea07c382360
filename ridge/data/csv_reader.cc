#include "ridge/data/csv_reader.h"

#include <fmt/format.h>

#include "ridge/data/csv_cells.h"

namespace ridge {
namespace {

constexpr int64_t kBufferBytes = 1 << 16;
constexpr size_t kLongestCell = 1 << 16;  // a page of text, which is left out, is shorter
constexpr size_t kMostCells = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it

bool IsLineEnd(int c) { return c == '\n' || c == '\r'; }

}  // namespace

Result<CsvReader> CsvReader::Open(const std::string& path, char delimiter) {
  RIDGE_ASSIGN_OR_RETURN(auto stream, ByteStream::Open(path));
  CsvReader reader(std::move(stream), delimiter);
  RIDGE_RETURN_IF_ERROR(reader.Peek().status());
  if (reader.buffer_.starts_with(kByteOrderMark)) reader.at_ = kByteOrderMark.size();
  return reader;
}

Result<bool> CsvReader::Next(std::vector<std::string>& cells) {
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
    if (c < 0) return false;
    RIDGE_ASSIGN_OR_RETURN(const bool has_text, ReadRecord(cells));
    if (has_text) return true;
  }
}

// False for an empty line.
Result<bool> CsvReader::ReadRecord(std::vector<std::string>& cells) {
  record_line_ = line_;
  size_t count = 0;
  while (true) {
    if (count == cells.size()) cells.emplace_back();
    cells[count].clear();
    RIDGE_RETURN_IF_ERROR(ReadCell(cells[count]));
    MakeUtf8(cells[count++]);
    RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
    if (c != delimiter_) break;
    if (count == kMostCells) return Bad(fmt::format("a line has more than {} cells", kMostCells));
    ++at_;
  }
  cells.resize(count);
  RIDGE_RETURN_IF_ERROR(EndLine());
  return count > 1 || !cells[0].empty();
}

// Leaves the reader before a delimiter, a line's end or the file's end.
Status CsvReader::ReadCell(std::string& cell) {
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
    if (!IsBlank(c)) return c == '"' ? ReadQuoted(cell) : ReadPlain(cell);
    ++at_;
  }
}

Status CsvReader::ReadPlain(std::string& cell) {
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
    if (c < 0 || c == delimiter_ || IsLineEnd(c)) break;
    RIDGE_RETURN_IF_ERROR(AddTo(cell, c));
    ++at_;
  }
  while (!cell.empty() && IsBlank(cell.back())) cell.pop_back();
  return Status();
}

Status CsvReader::ReadQuoted(std::string& cell) {
  ++at_;
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
    if (c < 0) return Bad("a quote is not closed");
    ++at_;
    if (c == '\n') ++line_;
    if (c == '"') {
      RIDGE_ASSIGN_OR_RETURN(const int next, Peek());
      if (next != '"') break;
      ++at_;  // "" inside quotes is one quote
    }
    RIDGE_RETURN_IF_ERROR(AddTo(cell, c));
  }
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
    if (c < 0 || c == delimiter_ || IsLineEnd(c)) return Status();
    if (!IsBlank(c)) return Bad("text follows a closing quote");
    ++at_;
  }
}

Status CsvReader::AddTo(std::string& cell, int c) {
  if (cell.size() >= kLongestCell)
    return Bad(fmt::format("a cell is longer than {} characters", kLongestCell));
  cell.push_back(static_cast<char>(c));
  return Status();
}

Status CsvReader::EndLine() {
  RIDGE_ASSIGN_OR_RETURN(const int c, Peek());
  if (c < 0) return Status();
  ++at_;
  ++line_;
  if (c != '\r') return Status();
  RIDGE_ASSIGN_OR_RETURN(const int next, Peek());
  if (next == '\n') ++at_;
  return Status();
}

Result<int> CsvReader::Peek() {
  if (at_ == buffer_.size()) {
    buffer_.resize(kBufferBytes);
    RIDGE_ASSIGN_OR_RETURN(const int64_t got, stream_->Read(buffer_.data(), kBufferBytes));
    buffer_.resize(static_cast<size_t>(got));
    at_ = 0;
    if (got == 0) return -1;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

Status CsvReader::Bad(const std::string& what) const {
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}:{}: {}", stream_->name(), record_line_, what));
}

}  // namespace ridge
