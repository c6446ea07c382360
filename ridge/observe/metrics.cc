#include "ridge/observe/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/observe/json_text.h"

namespace ridge {
namespace {

std::string NumberOrNull(const std::optional<double>& value) {
  return value ? JsonNumber(*value) : "null";
}

std::string LossText(double loss) {
  if (std::isfinite(loss)) return "";
  const char* text = std::isnan(loss) ? "nan" : loss > 0 ? "inf" : "-inf";
  return fmt::format(",\"loss_text\":\"{}\"", text);
}

// The step that a line reports; nothing when it is no report of ours.
std::optional<int64_t> StepOf(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<int64_t>();
}

// Where the first line of a later step, or an unfinished last line, begins.  Lines that are no
// reports, such as a user's notes, stay.
int64_t BytesToKeep(const std::string& path, int64_t resumed_step) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  int64_t kept_bytes = 0;
  while (std::getline(file, line) && !file.eof()) {  // eof: the line has no newline
    const std::optional<int64_t> step = StepOf(line);
    if (step && *step > resumed_step) break;
    kept_bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return kept_bytes;
}

}  // namespace

std::string MetricsLine(const MetricsReport& report) {
  std::string line = fmt::format(
      R"({{"step":{},"epoch":{},"loss":{},"accuracy":{},"lr":{},"samples_s":{},"input_wait":{},)"
      R"("step_s":{})",
      report.step, report.epoch, JsonNumber(report.loss), NumberOrNull(report.accuracy),
      JsonNumber(report.lr), JsonNumber(report.samples_s), JsonNumber(report.input_wait),
      JsonNumber(report.step_s));
  line += LossText(report.loss);
  if (report.validation_loss) line += ",\"validation_loss\":" + JsonNumber(*report.validation_loss);
  if (report.validation_accuracy)
    line += ",\"validation_accuracy\":" + JsonNumber(*report.validation_accuracy);
  return line + "}";
}

Result<MetricsWriter> MetricsWriter::Create(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Mode::kReplace));
  return MetricsWriter(std::move(file));
}

Result<MetricsWriter> MetricsWriter::Resume(const std::string& path, int64_t resumed_step) {
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Mode::kKeep));
  RIDGE_RETURN_IF_ERROR(file.CutTo(BytesToKeep(path, resumed_step)));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Add(const MetricsReport& report) {
  return file_.Append(MetricsLine(report) + "\n");
}

Status MetricsWriter::Close() { return file_.Close(); }

}  // namespace ridge
