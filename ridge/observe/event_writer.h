// EventWriter: scalars, histograms, pictures, the graph and hyperparameters for TensorBoard, in a
// file of its own.
//
// One Event per call, framed as a TFRecord (length, masked CRC-32C, data, masked CRC-32C), written
// at once: a killed process loses nothing, and TensorBoard sees a value as soon as it is there.
// Synced to the disk every 120 s, and by Flush() and Close().  Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ridge/core/output_file.h"
#include "ridge/core/process.h"
#include "ridge/core/shape.h"
#include "ridge/core/status.h"
#include "ridge/observe/histogram.h"

namespace ridge {

struct EventWriterOptions {
  // A resumed run: readers forget the values that older files of the folder hold of later steps.
  std::optional<int64_t> resumed_step;
  double sync_every_s = 120;
  std::function<double()> wall_seconds = WallSeconds;  // tests set the clock
};

struct ScalarValue {
  std::string_view tag;  // "train/loss"
  double value = 0;      // stored as float; NaN and infinities stay what they are
};

struct Hyperparameter {
  std::string name;
  std::variant<double, bool, std::string> value;
};

// A node of a model's graph.
struct GraphNode {
  std::string name;  // parts between slashes are boxes
  std::string op;
  std::vector<std::string> inputs;  // names; "NAME:1" is a node's second result
  std::vector<Dims> shapes;         // of the results
};

// A picture of three channels as the bytes of a PNG file.
struct EventPicture {
  int64_t height = 0, width = 0;
  std::string png;
};

class EventWriter {
 public:
  // Makes FOLDER/events.out.tfevents.<seconds>.<host>.<process>.<counter>, never over a file that
  // is there.  REQUIRES: the folder exists.  Fails with kUnavailable.
  static Result<std::unique_ptr<EventWriter>> Create(const std::string& folder,
                                                     EventWriterOptions options = {});

  // Values of one step.  On kUnavailable (a full disk) the file stays readable, these values are
  // lost, and the caller may go on.
  Status AddScalars(int64_t step, std::span<const ScalarValue> values);
  Status AddScalar(std::string_view tag, int64_t step, double value);

  // Without buckets nothing is written.
  Status AddHistogram(std::string_view tag, int64_t step, std::span<const HistogramBucket> buckets);

  Status AddPicture(std::string_view tag, int64_t step, const EventPicture& picture);
  Status AddGraph(std::span<const GraphNode> nodes);

  // The row of this run on the page that compares runs, and its end.
  Status AddSessionStart(std::span<const Hyperparameter> hyperparameters);
  Status AddSessionEnd(bool succeeded);

  Status Flush();  // to the disk
  Status Close();  // nothing can be added after it
  const std::string& path() const { return file_.path(); }

 private:
  EventWriter(OutputFile file, EventWriterOptions options);
  Status Begin();
  Status Write(std::string_view record);
  Status WriteSession(std::string_view tag, std::string_view content);

  OutputFile file_;
  EventWriterOptions options_;
  std::set<std::string, std::less<>> known_tags_;  // their metadata has been written
  double last_sync_s_ = 0;
};

// `payload` as a TFRecord.
std::string FrameRecord(std::string_view payload);

}  // namespace ridge
