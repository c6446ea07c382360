#include "ridge/report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "ridge/core/units.h"
#include "ridge/observe/json_text.h"
#include "ridge/observe/metrics.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/text.h"

namespace ridge {
namespace {

constexpr int kWidestBar = 24;
constexpr int kNarrowestBar = 8;
constexpr std::string_view kGap = "  ";
constexpr std::string_view kClearLine = "\r\x1b[K";

std::string LossText(double loss) {
  const double size = std::fabs(loss);
  const bool common = size == 0 || (size >= 1e-3 && size < 1e5);
  if (!std::isfinite(loss)) return std::isnan(loss) ? "nan" : loss > 0 ? "inf" : "-inf";
  return common ? fmt::format("{:.4f}", loss) : fmt::format("{:.3e}", loss);
}

std::string Of(std::string_view what, int64_t at, int64_t all) {
  if (all <= 0) return fmt::format("{} {}", what, at);
  return fmt::format("{} {}/{}", what, at, all);
}

// Whole seconds, never fewer than are left.
std::string EtaText(double seconds) {
  if (seconds > 99 || !(seconds >= 0)) return "ETA " + FormatSeconds(seconds);
  return fmt::format("ETA {:.0f} s", std::ceil(seconds));
}

// "(decode 80 % resize 12 %)": the largest two, from a twentieth on.
std::string StagesText(const StageSeconds& stages) {
  std::array<size_t, kInputStages> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return stages.seconds[a] > stages.seconds[b]; });
  std::string text;
  for (size_t i = 0; i < 2; ++i) {
    const auto stage = static_cast<InputStage>(order[i]);
    if (stages.Share(stage) < 0.05) continue;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "(" : " ", InputStageName(stage),
                        100 * stages.Share(stage));
  }
  return text.empty() ? text : text + ")";
}

// "GPU 96 %, SMs 91 %, tensor cores 43 %, 412 W, 61 C, 1980 MHz", with what is known.
std::string GpuText(const DeviceCounters& gpu) {
  std::string text;
  const auto add = [&](std::string_view name, std::optional<double> value, double scale,
                       std::string_view unit) {
    if (!value) return;
    text += fmt::format("{}{}{:.0f} {}", text.empty() ? "" : ", ", name, scale * *value, unit);
  };
  add("", gpu.utilization, 100, "%");
  add("SMs ", gpu.sm_share, 100, "%");
  add("tensor cores ", gpu.tensor_share, 100, "%");
  add("", gpu.power_w, 1, "W");
  add("", gpu.temperature_c, 1, "C");
  add("", gpu.clock_mhz, 1, "MHz");
  return text.empty() ? text : "GPU " + text;
}

// What stands in parentheses belongs to the field before it.
std::string_view GapBefore(const std::string& field) {
  return field.starts_with('(') ? kGap.substr(0, 1) : kGap;
}

// Behind epoch and step, the most wanted first.
std::vector<std::string> Fields(const ProgressReport& report) {
  std::vector<std::string> fields = {"loss " + LossText(report.loss)};
  if (report.accuracy) fields.push_back(fmt::format("accuracy {:.4f}", *report.accuracy));
  fields.push_back(FormatCount(report.samples_s) + " samples/s");
  if (report.eta_s) fields.push_back(EtaText(*report.eta_s));
  fields.push_back("input wait " + FormatPercent(report.input_wait));
  if (const std::string stages = StagesText(report.input_stages); !stages.empty())
    fields.push_back(stages);
  if (report.communication) {
    fields.push_back("communication " + FormatPercent(*report.communication));
    fields.push_back(fmt::format("(slowest: rank {})", report.slowest_rank));
  }
  if (const std::string gpu = GpuText(report.gpu); !gpu.empty()) fields.push_back(gpu);
  if (report.bad_records > 0) fields.push_back(FormatCountOf(report.bad_records, "bad record"));
  return fields;
}

// The bar and blanks up to its full width, between the epoch and the step.
std::string DrawnBar(const ProgressReport& report, int width, const Terminal& terminal) {
  const double fraction = static_cast<double>(report.step) / static_cast<double>(report.steps);
  const std::string bar = BarText(fraction, width, terminal.unicode);
  const std::string rest(static_cast<size_t>(width - DisplayWidth(bar)), ' ');
  return Styled(bar, Style::kGreen, terminal) + rest;
}

}  // namespace

Result<ProgressMode> ParseProgressMode(std::string_view text) {
  if (text == "auto") return ProgressMode::kAuto;
  if (text == "bar") return ProgressMode::kBar;
  if (text == "plain") return ProgressMode::kPlain;
  if (text == "json") return ProgressMode::kJson;
  if (text == "none") return ProgressMode::kNone;
  return Status(
      ErrorCode::kInvalidArgument,
      fmt::format("--progress '{}' is unknown; use auto, bar, plain, json or none", text));
}

std::string PlainProgress(const ProgressReport& report) {
  std::string text = Of("epoch", report.epoch, report.epochs);
  text.append(kGap).append(Of("step", report.step, report.steps));
  for (const std::string& field : Fields(report)) text.append(GapBefore(field)).append(field);
  return text;
}

std::string JsonProgress(const ProgressReport& report) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? JsonNumber(*value) : "null";
  };
  return fmt::format(
      R"({{"event":"progress","epoch":{},"epochs":{},"step":{},"steps":{},"loss":{},)"
      R"("accuracy":{},"samples_s":{},"input_wait":{},"eta_s":{}{}}})",
      report.epoch, report.epochs, report.step, report.steps, JsonNumber(report.loss),
      optional(report.accuracy), JsonNumber(report.samples_s), JsonNumber(report.input_wait),
      optional(report.eta_s),
      InputStagesJson(report.input_stages) + CountersJson(report.gpu) +
          (report.communication
               ? fmt::format(R"(,"communication":{},"slowest_rank":{})",
                             JsonNumber(*report.communication), report.slowest_rank)
               : "") +
          (report.bad_records > 0 ? fmt::format(R"(,"bad_records":{})", report.bad_records) : ""));
}

std::string BarProgress(const ProgressReport& report, const Terminal& terminal) {
  const std::string epoch = Of("epoch", report.epoch, report.epochs);
  std::string rest = Of("step", report.step, report.steps);
  if (report.steps > 0) {  // steps line up while their digits grow
    const int width = DisplayWidth(fmt::format("{}", report.steps));
    rest = fmt::format("step {:>{}}/{}", report.step, width, report.steps);
  }
  const int room = terminal.width - 1;  // the last column would wrap
  const auto used = [&] { return DisplayWidth(epoch) + DisplayWidth(rest) + 2; };
  for (const std::string& field : Fields(report)) {
    const int after = used() + 2 + DisplayWidth(field);
    if (after + kNarrowestBar + 2 > room) break;
    rest.append(GapBefore(field)).append(field);
  }
  // In steps of 8, so that the bar does not change its width with each digit behind it.
  const int bar = std::min(room - used() - 2, kWidestBar) / 8 * 8;
  if (report.steps <= 0 || bar < kNarrowestBar)
    return Shortened(epoch + std::string(kGap) + rest, room, terminal.unicode);
  return fmt::format("{}{}{}{}{}", epoch, kGap, DrawnBar(report, bar, terminal), kGap, rest);
}

Progress::Progress(ProgressMode mode, const Terminal& terminal, TextSink sink,
                   ProgressOptions options)
    : mode_(mode), terminal_(terminal), sink_(std::move(sink)), options_(std::move(options)) {
  const bool wants_bar = mode == ProgressMode::kAuto || mode == ProgressMode::kBar;
  if (wants_bar) mode_ = terminal.is_terminal ? ProgressMode::kBar : ProgressMode::kPlain;
}

Progress::~Progress() {
  if (bar_is_drawn_) sink_("\n");
}

void Progress::Update(const ProgressReport& report, double now_s) {
  last_ = report;
  last_is_shown_ = false;
  const double every_s = mode_ == ProgressMode::kBar ? options_.bar_every_s : options_.line_every_s;
  if (shown_at_s_ && now_s - *shown_at_s_ < every_s) return;
  shown_at_s_ = now_s;
  Show();
}

void Progress::Show() {
  last_is_shown_ = true;
  switch (mode_) {
    case ProgressMode::kAuto:
    case ProgressMode::kNone:
      return;
    case ProgressMode::kPlain:
      return sink_(PlainProgress(last_) + "\n");
    case ProgressMode::kJson:
      return sink_(JsonProgress(last_) + "\n");
    case ProgressMode::kBar:
      break;
  }
  const int columns = options_.columns ? options_.columns() : 0;
  if (columns > 0) terminal_.width = columns;
  sink_(std::string(kClearLine) + BarProgress(last_, terminal_));  // one write, so no flicker
  bar_is_drawn_ = true;
}

void Progress::Print(std::string_view line) {
  if (mode_ == ProgressMode::kJson)
    return sink_(fmt::format("{{\"event\":\"message\",\"text\":{}}}\n", JsonText(line)));
  const bool redraw = bar_is_drawn_;
  sink_(fmt::format("{}{}\n", redraw ? kClearLine : "", PrintableLines(line)));
  if (redraw) Show();
}

void Progress::Finish() {
  if (!last_is_shown_) Show();
  if (std::exchange(bar_is_drawn_, false)) sink_("\n");
  shown_at_s_.reset();
}

}  // namespace ridge
