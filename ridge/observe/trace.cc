// Only complete events (ph X) are written: they cannot be unbalanced, and they are half the size of
// a begin and an end.
#include "ridge/observe/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ridge/observe/json_text.h"

namespace ridge {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

// Microseconds, with the nanoseconds behind the dot.
std::string Micros(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.3f}", seconds * 1e6) : "0";
}

std::string ArgValue(const TraceArg& arg) {
  if (const auto* whole = std::get_if<int64_t>(&arg.value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&arg.value)) return JsonNumber(*number);
  return JsonText(std::get<std::string_view>(arg.value));
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Mode::kReplace));
  std::unique_ptr<TraceWriter> writer(new TraceWriter(std::move(file)));
  RIDGE_RETURN_IF_ERROR(writer->file_.Append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":["));
  return writer;
}

TraceWriter::~TraceWriter() { (void)Close().ok(); }

Status TraceWriter::NameProcess(int pid, std::string_view name, int order) {
  const TraceTrack track{pid, 0};
  RIDGE_RETURN_IF_ERROR(AddMetadata("process_name", track, "\"name\":" + JsonText(name)));
  return AddMetadata("process_sort_index", track, fmt::format("\"sort_index\":{}", order));
}

Status TraceWriter::NameThread(TraceTrack track, std::string_view name, int order) {
  RIDGE_RETURN_IF_ERROR(AddMetadata("thread_name", track, "\"name\":" + JsonText(name)));
  return AddMetadata("thread_sort_index", track, fmt::format("\"sort_index\":{}", order));
}

Status TraceWriter::AddMetadata(std::string_view what, TraceTrack track, std::string_view arg) {
  return Add(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{{}}}}})", what,
                         track.pid, track.tid, arg));
}

Status TraceWriter::AddSpan(const TraceSpan& span) {
  std::string event =
      fmt::format(R"({{"name":{},"cat":{},"ph":"X","ts":{},"dur":{},"pid":{},"tid":{})",
                  JsonText(span.name), JsonText(span.category.empty() ? "node" : span.category),
                  Micros(span.start_s), Micros(span.duration_s), span.track.pid, span.track.tid);
  for (size_t i = 0; i < span.args.size(); ++i) {
    event += i == 0 ? ",\"args\":{" : ",";
    event += JsonText(span.args[i].name) + ":" + ArgValue(span.args[i]);
  }
  return Add(event + (span.args.empty() ? "}" : "}}"));
}

Status TraceWriter::AddCounter(std::string_view name, int pid, double time_s,
                               std::span<const TraceSeries> values) {
  std::string args;
  for (const TraceSeries& series : values) {
    if (!args.empty()) args += ",";
    args += JsonText(series.name) + ":" + JsonNumber(series.value);
  }
  return Add(fmt::format(R"({{"name":{},"ph":"C","ts":{},"pid":{},"args":{{{}}}}})", JsonText(name),
                         Micros(time_s), pid, args));
}

Status TraceWriter::Add(std::string_view event) {
  RIDGE_CHECK(!closed_, "the trace is still open");
  if (!first_error_.ok()) return first_error_;
  buffer_ += std::exchange(has_events_, true) ? ",\n" : "\n";
  buffer_ += event;
  return buffer_.size() < kBufferBytes ? Status() : WriteBuffer();
}

// A buffer ends with a whole event, so what is in the file when the disk fills up can be ended.
Status TraceWriter::WriteBuffer() {
  first_error_ = file_.Append(buffer_);
  buffer_.clear();
  return first_error_;
}

Status TraceWriter::Close() {
  if (std::exchange(closed_, true)) return Status();
  if (first_error_.ok()) (void)WriteBuffer().ok();
  const Status ended = file_.Append("\n]}\n");
  const Status closed = file_.Close();
  if (!first_error_.ok()) return first_error_;
  return ended.ok() ? closed : ended;
}

}  // namespace ridge
