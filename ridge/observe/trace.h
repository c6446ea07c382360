// TraceWriter: a timeline that Perfetto and chrome://tracing open.
//
// JSON of the Chrome trace format, streamed: memory stays at one 64 KiB buffer however long the run
// is.  Valid JSON once Close() has run, with no event too.  When the disk fills up, the trace ends
// there: every later call returns the first error (kUnavailable), so a caller may warn once and go
// on.  Times are seconds since any start that all events share.  Names may hold any bytes.
// Not thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "ridge/core/output_file.h"
#include "ridge/core/status.h"

namespace ridge {

// Where an event is drawn: pid is the rank, tid a stream, thread or stage.
struct TraceTrack {
  int pid = 0;
  int tid = 0;
};

struct TraceArg {
  std::string_view name;
  std::variant<int64_t, double, std::string_view> value;  // NaN and infinities become null
};

struct TraceSpan {
  std::string_view name;      // "layer.3.mlp.up"
  std::string_view category;  // "matmul"
  TraceTrack track;
  double start_s = 0;
  double duration_s = 0;
  std::span<const TraceArg> args;  // shown when the event is clicked
};

struct TraceSeries {
  std::string_view name;  // "planned"
  double value = 0;
};

class TraceWriter {
 public:
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& path);
  ~TraceWriter();  // closes; its error is lost

  // Names and order of the tracks; `order` counts from the top.
  Status NameProcess(int pid, std::string_view name, int order = 0);
  Status NameThread(TraceTrack track, std::string_view name, int order = 0);

  Status AddSpan(const TraceSpan& span);

  // A stacked chart named `name`, such as the arena's bytes; one value per series.
  Status AddCounter(std::string_view name, int pid, double time_s,
                    std::span<const TraceSeries> values);

  // Ends the JSON, syncs and closes.  Nothing can be added after it.
  Status Close();

 private:
  explicit TraceWriter(OutputFile file) : file_(std::move(file)) {}
  Status Add(std::string_view event);
  Status AddMetadata(std::string_view what, TraceTrack track, std::string_view arg);
  Status WriteBuffer();

  OutputFile file_;
  std::string buffer_;
  Status first_error_;
  bool has_events_ = false;
  bool closed_ = false;
};

}  // namespace ridge
