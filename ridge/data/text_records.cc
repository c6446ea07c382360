#include "ridge/data/text_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ridge/core/split.h"
#include "ridge/data/byte_stream.h"

namespace ridge {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;
constexpr size_t kBuffer = size_t{64} << 10;

class Records {
 public:
  Records(const std::string& path, const std::string& form, const RecordVisitor& visit)
      : path_(path), form_(form), visit_(visit) {}

  // A line without its end.
  Status AddLine(std::string_view line) {
    ++line_;
    const int64_t begin = at_;
    at_ += static_cast<int64_t>(line.size()) + 1;
    if (Cuts(line)) return Flush();
    if (record_.empty()) {
      first_line_ = line_;
      offset_ = begin;
    }
    record_ += line;
    record_ += '\n';
    return form_ == "line" ? Flush() : Status();
  }

  Status Flush() {
    const std::string_view record = form_ == "file" ? record_ : Trimmed(record_);
    if (!Trimmed(record).empty()) {
      const int64_t before = record.data() - record_.data();
      RIDGE_RETURN_IF_ERROR(visit_({record, first_line_, offset_ + before}));
    }
    record_.clear();
    return Status();
  }

  Status CheckSize(size_t more) const {
    if (record_.size() + more <= kMostBytes) return Status();
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: line {}: a record has more than {} MiB. hint: record=line",
                              path_, first_line_, kMostBytes >> 20));
  }

  void DropLastLineEnd() {
    if (record_.ends_with('\n')) record_.pop_back();
  }

 private:
  bool Cuts(std::string_view line) const {
    if (form_ == "line" || form_ == "file") return false;
    if (form_ == "paragraph") return Trimmed(line).empty();
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line == form_;
  }

  const std::string& path_;
  const std::string& form_;
  const RecordVisitor& visit_;
  std::string record_;
  int64_t line_ = 0, first_line_ = 1;
  int64_t at_ = 0, offset_ = 0;  // behind the last line; where the record's first line begins
};

// Takes whole lines off the front of `text`.
Status AddLines(Records& records, std::string& text) {
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    RIDGE_RETURN_IF_ERROR(records.CheckSize(end - at));
    RIDGE_RETURN_IF_ERROR(records.AddLine(std::string_view(text).substr(at, end - at)));
  }
  text.erase(0, at);
  return records.CheckSize(text.size());
}

}  // namespace

Status ForEachRecord(const std::string& path, const std::string& form, const RecordVisitor& visit) {
  RIDGE_ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(path));
  Records records(path, form, visit);
  std::string text;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + kBuffer);
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           stream->Read(text.data() + before, static_cast<int64_t>(kBuffer)));
    text.resize(before + static_cast<size_t>(got));
    // Only what is new can hold the end of a line.
    if (text.find('\n', before) != std::string::npos)
      RIDGE_RETURN_IF_ERROR(AddLines(records, text));
    else
      RIDGE_RETURN_IF_ERROR(records.CheckSize(text.size()));
    if (got < static_cast<int64_t>(kBuffer)) break;
  }
  RIDGE_RETURN_IF_ERROR(stream->ExpectEnd());
  if (!text.empty()) {
    RIDGE_RETURN_IF_ERROR(records.AddLine(text));
    records.DropLastLineEnd();
  }
  return records.Flush();
}

}  // namespace ridge
