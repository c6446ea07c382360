// Progress: how far a run is, on a terminal or in a log.
//
//   bar    epoch 1/3  ██████▌         step  234/1404  loss 0.4312  ...   redrawn in place
//   plain  epoch 1/3  step 234/1404  loss 0.4312  ...                   a line every few seconds
//   json   {"event":"progress","epoch":1,...}                           the same, for machines
//
// Call Update() after every step: it costs a clock reading and a comparison where nothing is due,
// and allocates only when it writes.  Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ridge/core/device_counters.h"
#include "ridge/core/stage_times.h"
#include "ridge/core/status.h"
#include "ridge/report/terminal.h"

namespace ridge {

enum class ProgressMode { kAuto, kBar, kPlain, kJson, kNone };
Result<ProgressMode> ParseProgressMode(std::string_view text);  // fails with kInvalidArgument

struct ProgressReport {
  int64_t epoch = 0;   // from 1
  int64_t epochs = 0;  // 0: unknown, as `steps`
  int64_t step = 0;
  int64_t steps = 0;  // of the whole run
  double loss = 0;
  std::optional<double> accuracy;
  double samples_s = 0;
  double input_wait = 0;           // 0 to 1
  StageSeconds input_stages = {};  // where the time of reading went; zeros: it is not told
  DeviceCounters gpu = {};         // empty: there is none
  std::optional<double> eta_s;     // seconds left
  int64_t bad_records = 0;         // samples skipped so far
  // Of several ranks: the share of the step in sums over them, and who comes to these last.
  std::optional<double> communication;
  int slowest_rank = 0;
};

struct ProgressOptions {
  double bar_every_s = 0.1;
  double line_every_s = 5;
  std::function<int()> columns;  // asked at each redraw, for windows that change; may be empty
};

// The texts alone; both without a newline.
std::string PlainProgress(const ProgressReport& report);
std::string JsonProgress(const ProgressReport& report);
// At most `terminal.width` - 1 columns: the bar gives way first, then the last fields.
std::string BarProgress(const ProgressReport& report, const Terminal& terminal);

class Progress {
 public:
  // kAuto is a bar on a terminal, else plain; kBar where there is no terminal is plain.
  // `sink` is standard error: standard output is for data.
  Progress(ProgressMode mode, const Terminal& terminal, TextSink sink,
           ProgressOptions options = {});
  ~Progress();  // ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shown when it is the first or enough time has passed since what was shown last.
  void Update(const ProgressReport& report, double now_s);

  // A line of its own while the run goes on: a warning, an epoch's accuracy.  The bar stays below.
  // In JSON mode {"event":"message","text":...}; in mode none the plain line.
  void Print(std::string_view line);

  // Shows the last report if it was not, and ends the bar's line.  A later Update() starts anew.
  void Finish();

  ProgressMode mode() const { return mode_; }

 private:
  void Show();

  ProgressMode mode_;
  Terminal terminal_;
  TextSink sink_;
  ProgressOptions options_;
  ProgressReport last_;
  std::optional<double> shown_at_s_;
  bool last_is_shown_ = true;
  bool bar_is_drawn_ = false;
};

}  // namespace ridge
