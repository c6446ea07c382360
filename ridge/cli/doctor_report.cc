#include "ridge/cli/doctor_report.h"

#include <fmt/format.h>

#include "ridge/core/files.h"
#include "ridge/doctor/find_probe.h"

namespace ridge::cli {

nlohmann::ordered_json ProblemsJson(const std::vector<Problem>& problems) {
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const Problem& problem : problems) {
    json.push_back({{"severity", SeverityName(problem.severity)},
                    {"subject", problem.subject},
                    {"text", problem.text},
                    {"mend", problem.mend},
                    {"source", problem.source.empty() ? Json(nullptr) : Json(problem.source)}});
  }
  return json;
}

std::string ProblemsText(const std::vector<Problem>& problems) {
  if (problems.empty()) return "\nNo problem was found.\n";
  std::string text;
  for (const Problem& problem : problems) {
    text += fmt::format("\n{}: {}: {}\n  mend: {}\n", SeverityName(problem.severity),
                        problem.subject, problem.text, problem.mend);
    if (!problem.source.empty()) text += fmt::format("  source: {}\n", problem.source);
  }
  return text;
}

Result<Probe> ProbeOf(const std::optional<std::string>& file) {
  if (!file) return FindProbe(ThisMachine());
  constexpr int64_t kMostBytes = 1 << 20;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(*file, kMostBytes));
  return ParseProbe(text, *file);
}

}  // namespace ridge::cli
