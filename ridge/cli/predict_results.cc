#include "ridge/cli/predict_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/table.h"

namespace ridge::cli {

int64_t PredictResults::boxes() const {
  int64_t count = 0;
  for (const InputAnswer& prediction : predictions) count += std::ssize(prediction.boxes);
  return count;
}

namespace {

nlohmann::ordered_json RankedJson(const PredictResults& results, const RankedClass& ranked) {
  return {{"class", results.NameOf(ranked)},
          {"index", ranked.index},
          {results.probability(), ranked.probability}};
}

nlohmann::ordered_json BoxesJson(const PredictResults& results, const InputAnswer& prediction) {
  auto boxes = nlohmann::ordered_json::array();
  for (const DetectedBox& box : prediction.boxes) {
    boxes.push_back({{"class", ClassName(results.signature, box.label)},
                     {"index", box.label},
                     {"score", box.score},
                     {"box", {box.x1, box.y1, box.x2, box.y2}}});
  }
  return boxes;
}

const char* AnswerName(const PredictResults& results) {
  if (results.is_boxes()) return "boxes";
  if (results.is_mask()) return "mask";
  if (results.is_text()) return "text";
  return results.has_classes() ? "classes" : "number";
}

}  // namespace

std::string ResultsJson(const PredictResults& results) {
  nlohmann::ordered_json json;
  json["step"] = results.step;
  json["answer"] = AnswerName(results);
  if (!results.signature.label.empty()) json["label"] = results.signature.label;
  json["predictions"] = nlohmann::ordered_json::array();
  for (const InputAnswer& prediction : results.predictions) {
    nlohmann::ordered_json entry = {{"input", prediction.name}};
    if (results.has_classes()) {
      entry.update(RankedJson(results, prediction.top[0]));
      entry["top"] = nlohmann::ordered_json::array();
      for (const RankedClass& ranked : prediction.top)
        entry["top"].push_back(RankedJson(results, ranked));
    } else if (results.is_boxes()) {
      entry["boxes"] = BoxesJson(results, prediction);
    } else if (results.is_text()) {
      entry["text"] = prediction.text;
    } else {
      entry["value"] = prediction.number;
    }
    if (!prediction.file.empty()) entry[results.is_mask() ? "mask" : "picture"] = prediction.file;
    json["predictions"].push_back(std::move(entry));
  }
  json["skipped"] = nlohmann::ordered_json::array();
  for (const SkippedInput& skipped : results.skipped)
    json["skipped"].push_back({{"input", skipped.name}, {"reason", skipped.why}});
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

std::string Cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// A line a box.
std::string BoxesCsv(const PredictResults& results) {
  std::string text = "input,class,score,x1,y1,x2,y2\n";
  for (const InputAnswer& prediction : results.predictions) {
    for (const DetectedBox& box : prediction.boxes)
      text += fmt::format("{},{},{},{},{},{},{}\n", Cell(prediction.name),
                          Cell(ClassName(results.signature, box.label)), box.score, box.x1, box.y1,
                          box.x2, box.y2);
  }
  return text;
}

}  // namespace

std::string ResultsCsv(const PredictResults& results) {
  if (results.is_boxes()) return BoxesCsv(results);
  std::string text = "input";
  const size_t top = results.predictions.empty() ? 0 : results.predictions[0].top.size();
  for (size_t i = 0; i < top; ++i) {
    const std::string number = i == 0 ? "" : fmt::format("_{}", i + 1);
    text += fmt::format(",class{0},{1}{0}", number, results.probability());
  }
  if (!results.has_classes()) text += "," + Cell(results.label());
  text += "\n";
  for (const InputAnswer& prediction : results.predictions) {
    text += Cell(prediction.name);
    for (const RankedClass& ranked : prediction.top)
      text += fmt::format(",{},{}", Cell(results.NameOf(ranked)), ranked.probability);
    if (results.is_text())
      text += "," + Cell(prediction.text);
    else if (!results.has_classes())
      text += fmt::format(",{}", prediction.number);
    text += "\n";
  }
  return text;
}

namespace {

// One input: its classes below each other.
std::string SingleText(const PredictResults& results, const Terminal& terminal) {
  constexpr int kBarWidth = 24;
  const InputAnswer& prediction = results.predictions[0];
  std::string text = Styled(prediction.name, Style::kBold, terminal) + "\n";
  Table table({{""}, {"", Align::kRight}, {""}});
  for (size_t i = 0; i < prediction.top.size(); ++i) {
    const RankedClass& ranked = prediction.top[i];
    table.AddRow({results.NameOf(ranked), FormatPercent(ranked.probability),
                  BarText(ranked.probability, kBarWidth, terminal.unicode)},
                 i == 0 ? Style::kBold : Style::kPlain);
  }
  return text + table.ToText(terminal);
}

// One input: its boxes below each other.
std::string SingleBoxesText(const PredictResults& results, const Terminal& terminal) {
  const InputAnswer& prediction = results.predictions[0];
  std::string text = Styled(prediction.name, Style::kBold, terminal) + "\n";
  if (prediction.boxes.empty()) return text + "  no box\n";
  Table table({{"class"},
               {"score", Align::kRight},
               {"x1", Align::kRight},
               {"y1", Align::kRight},
               {"x2", Align::kRight},
               {"y2", Align::kRight}});
  const auto side = [](double pixels) { return fmt::format("{:.0f}", pixels); };
  for (const DetectedBox& box : prediction.boxes)
    table.AddRow({ClassName(results.signature, box.label), FormatPercent(box.score), side(box.x1),
                  side(box.y1), side(box.x2), side(box.y2)});
  return text + table.ToText(terminal);
}

// "2 cat, 1 dog", the most frequent first.
std::string CountsText(const PredictResults& results, const std::vector<DetectedBox>& boxes) {
  std::map<int64_t, int64_t> counts;
  for (const DetectedBox& box : boxes) ++counts[box.label];
  std::vector<std::pair<int64_t, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [label, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        ClassName(results.signature, label));
  return text.empty() ? "none" : text;
}

std::string BoxesText(const PredictResults& results, const Terminal& terminal) {
  if (results.predictions.size() == 1) return SingleBoxesText(results, terminal);
  Table table({{"input"}, {"boxes"}});
  for (const InputAnswer& prediction : results.predictions)
    table.AddRow({prediction.name, CountsText(results, prediction.boxes)});
  return table.ToText(terminal, /*indent=*/0);
}

}  // namespace

std::string ResultsText(const PredictResults& results, const Terminal& terminal) {
  if (results.is_boxes()) return BoxesText(results, terminal);
  const bool one = results.predictions.size() == 1;
  if (one && results.has_classes()) return SingleText(results, terminal);
  if (one && results.is_text()) return results.predictions[0].text + "\n";
  std::vector<Column> columns = {{"input"}};
  const size_t top = results.predictions[0].top.size();
  for (size_t i = 0; i < top; ++i) {
    columns.push_back({i == 0 ? "class" : fmt::format("class {}", i + 1)});
    columns.push_back({i == 0 ? results.probability() : "", Align::kRight});
  }
  if (!results.has_classes())
    columns.push_back({results.label(), results.is_text() ? Align::kLeft : Align::kRight});
  Table table(std::move(columns));
  for (const InputAnswer& prediction : results.predictions) {
    std::vector<std::string> cells = {prediction.name};
    for (const RankedClass& ranked : prediction.top) {
      cells.push_back(results.NameOf(ranked));
      cells.push_back(FormatPercent(ranked.probability));
    }
    if (results.is_text())
      cells.push_back(prediction.text);
    else if (!results.has_classes())
      cells.push_back(fmt::format("{:.6g}", prediction.number));
    table.AddRow(std::move(cells));
  }
  return table.ToText(terminal, /*indent=*/0);
}

}  // namespace ridge::cli
