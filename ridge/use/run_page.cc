// Files that cannot be read are left out: a page of a run that failed is wanted most.
#include "ridge/use/run_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/observe/metric_names.h"
#include "ridge/report/html.h"
#include "ridge/train/options/options.h"
#include "ridge/train/store/evaluation_pictures.h"
#include "ridge/train/store/run_overview.h"
#include "ridge/use/run_findings.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kStyle =
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:14px 0}\n"
    ".tile{background:var(--card);border-radius:6px;padding:8px 16px}\n"
    ".tile b{display:block;font-size:20px}.tile span{color:var(--soft)}\n"
    ".wrong{display:flex;flex-wrap:wrap;gap:12px}.wrong div{background:var(--card);"
    "border-radius:6px;padding:8px;width:170px;overflow-wrap:anywhere}\n"
    ".wrong img{image-rendering:pixelated;width:96px;height:96px;object-fit:contain;"
    "display:block}\n"
    ".side{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr));gap:0 "
    "40px}\n";

// All that the folder tells.
struct Told {
  RunOverview run;
  RunCurves curves;
  std::optional<EvaluationRecord> evaluation;
  Json plan;  // null without one
};

Result<Told> ReadTold(const std::string& folder) {
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(folder));
  Told told;
  told.run = ReadOverview(run.path());
  told.curves = ReadRunCurves(run.MetricsLines());
  if (const Result<std::string> text = ReadFile(run.File(kLayersFile)); text.ok())
    told.curves.layers = ReadLayerReports(*text);
  const std::string file = run.File(kEvaluationFile);
  if (const Result<std::string> text = ReadFile(file); text.ok()) {
    Result<EvaluationRecord> record = RecordFromJson(*text, file);
    if (record.ok()) told.evaluation = std::move(*record);
  }
  if (const Result<std::string> text = ReadFile(run.File("plan.json")); text.ok())
    told.plan = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return told;
}

// A number of the plan; 0 where it has none.
double NumberOf(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_number()) return 0;
  return json.at(key).get<double>();
}

std::string TextOf(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_string()) return "";
  return json.at(key).get<std::string>();
}

// ---- the head

std::string Tile(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", HtmlEscaped(value),
                     HtmlEscaped(what));
}

std::string Tiles(const Told& told) {
  const RunOverview& run = told.run;
  const std::string on = run.evaluated_on.empty() ? "" : run.evaluated_on + " ";
  std::string tiles;
  if (run.accuracy) tiles += Tile(FormatPercent(*run.accuracy), on + "accuracy");
  if (run.loss) tiles += Tile(fmt::format("{:.4f}", *run.loss), on + "loss");
  tiles += Tile(FormatInteger(run.step), fmt::format("steps, {} epochs", run.epoch));
  if (run.step_s > 0) tiles += Tile(FormatSeconds(run.step_s), "a step");
  if (run.summary) {
    tiles += Tile(FormatSeconds(run.summary->wall_s), "in all");
    tiles += Tile(FormatBytes(run.summary->measured.peak_bytes), "peak memory");
  }
  return "<div class=\"tiles\">\n" + tiles + "</div>\n";
}

std::string StateText(const RunOverview& run) {
  std::string text = RunStateName(run.state);
  if (!run.reason.empty()) text += ": " + run.reason;
  if (run.summary && run.summary->stopped_early)
    text +=
        fmt::format(", stopped early after {} evaluations without a better {}",
                    run.summary->stopped_early->evaluations, run.summary->stopped_early->metric);
  return text;
}

std::string Head(const Told& told) {
  const RunOverview& run = told.run;
  const std::string device = run.summary ? run.summary->device : TextOf(told.plan, "device");
  const std::string started =
      run.started_s > 0 ? fmt::format("{:%Y-%m-%d %H:%M} UTC",
                                      fmt::gmtime(static_cast<std::time_t>(run.started_s)))
                        : "";
  std::string text = fmt::format("<p>{} on {}, {}, batch {}</p>\n", HtmlEscaped(run.options.model),
                                 HtmlEscaped(run.options.data),
                                 HtmlEscaped(run.options.optimizer.name), run.options.batch);
  text += fmt::format("<p class=\"soft\">{}{}{}</p>\n", HtmlEscaped(StateText(run)),
                      started.empty() ? "" : ", started " + started,
                      device.empty() ? "" : ", " + HtmlEscaped(device));
  return text + Tiles(told);
}

// Words between backticks are code.
std::string WithCode(const std::string& text) {
  std::string out;
  bool inside = false;
  for (const char c : HtmlEscaped(text)) {
    if (c != '`') {
      out += c;
      continue;
    }
    out += inside ? "</code>" : "<code>";
    inside = !inside;
  }
  return out + (inside ? "</code>" : "");
}

std::string Findings(const Told& told) {
  std::string items;
  for (const std::string& finding : FindingsOf(told.run, told.curves, told.evaluation))
    items += "<li>" + WithCode(finding) + "</li>\n";
  return items.empty() ? "" : "<h2>What stands out</h2>\n<ul>\n" + items + "</ul>\n";
}

// ---- curves

template <typename Get>
ChartLine Line(const std::string& name, const std::vector<MetricsReport>& reports, Get get) {
  ChartLine line{name, {}};
  for (const MetricsReport& report : reports) {
    const std::optional<double> y = get(report);
    if (y) line.points.emplace_back(static_cast<double>(report.step), *y);
  }
  return line;
}

// Evaluations by the data that they were made on, in the order of their names.
std::map<std::string, std::vector<MetricsReport>> BySet(const RunCurves& curves) {
  std::map<std::string, std::vector<MetricsReport>> sets;
  for (const MetricsReport& report : curves.evaluations)
    sets[report.evaluated_on].push_back(report);
  return sets;
}

std::string Charts(const RunCurves& curves) {
  using Report = MetricsReport;
  using Value = std::optional<double>;
  LineChart loss{"Loss", "step", {}}, accuracy{"Accuracy, %", "step", {}};
  const auto percent = [](Value share) { return share ? Value(*share * 100) : Value(); };
  loss.lines.push_back(
      Line("training", curves.training, [](const Report& r) { return Value(r.loss); }));
  accuracy.lines.push_back(
      Line("training", curves.training, [&](const Report& r) { return percent(r.accuracy); }));
  for (const auto& [name, reports] : BySet(curves)) {
    loss.lines.push_back(Line(name, reports, [](const Report& r) { return r.evaluation_loss; }));
    accuracy.lines.push_back(
        Line(name, reports, [&](const Report& r) { return percent(r.evaluation_accuracy); }));
  }
  const auto single = [&](const char* title, auto get) {
    return SvgLineChart({title, "step", {Line("training", curves.training, get)}});
  };
  std::string text = SvgLineChart(loss) + SvgLineChart(accuracy);
  text += single("Learning rate", [](const Report& r) { return Value(r.lr); });
  text += single("Samples a second", [](const Report& r) { return Value(r.samples_s); });
  text += single("Input wait, %", [&](const Report& r) { return percent(Value(r.input_wait)); });
  text += single("GPU load, %", [&](const Report& r) { return percent(r.gpu.utilization); });
  text += single("GPU power, W", [](const Report& r) { return r.gpu.power_w; });
  text += single("Loss scale", [](const Report& r) {
    return r.loss_scaling ? Value(r.loss_scaling->scale) : Value();
  });
  text += single("Skipped updates", [](const Report& r) {
    return r.loss_scaling ? Value(static_cast<double>(r.loss_scaling->skipped_steps)) : Value();
  });
  return text.empty() ? "" : "<h2>Curves</h2>\n<div class=\"charts\">\n" + text + "</div>\n";
}

// ---- plan

std::string ErrorText(double planned, double measured) {
  return measured > 0 ? FormatPercentChange(planned / measured - 1) : "";
}

std::string PlanAgainstMeasured(const RunOverview& run) {
  if (!run.summary) return "";
  const RunFigures &plan = run.summary->planned, &is = run.summary->measured;
  const auto bytes = [](int64_t planned, int64_t measured) {
    return std::vector<std::string>{
        FormatBytes(planned), FormatBytes(measured),
        ErrorText(static_cast<double>(planned), static_cast<double>(measured))};
  };
  const auto seconds = [](double planned, double measured) {
    return std::vector<std::string>{FormatSeconds(planned), FormatSeconds(measured),
                                    ErrorText(planned, measured)};
  };
  Rows rows = {{"", "planned", "measured", "error"}};
  const auto add = [&](const char* what, std::vector<std::string> cells) {
    cells.insert(cells.begin(), what);
    rows.push_back(std::move(cells));
  };
  add("peak memory", bytes(plan.peak_bytes, is.peak_bytes));
  add("arena", bytes(plan.arena_bytes, is.arena_bytes));
  if (plan.input_bytes && is.input_bytes) add("inputs", bytes(*plan.input_bytes, *is.input_bytes));
  add("step time", seconds(plan.step_s, is.step_s));
  if (plan.modelled_step_s) add("step time, modelled", seconds(*plan.modelled_step_s, is.step_s));
  if (plan.epoch_s && is.epoch_s) add("epoch time", seconds(*plan.epoch_s, *is.epoch_s));
  return "<div><h2>Planned against measured</h2>\n" + HtmlTable(rows) + "</div>\n";
}

std::string MemoryByPurpose(const Json& plan) {
  if (!plan.is_object() || !plan.contains("breakdown") || !plan.at("breakdown").is_object())
    return "";
  double most = 1;
  for (const auto& [purpose, bytes] : plan.at("breakdown").items()) {
    if (bytes.is_number()) most = std::max(most, bytes.get<double>());
  }
  Rows rows = {{"", "planned", ""}};
  for (const auto& [purpose, bytes] : plan.at("breakdown").items()) {
    if (!bytes.is_number() || bytes.get<double>() <= 0) continue;
    rows.push_back({HtmlEscaped(purpose), FormatBytes(bytes.get<int64_t>()),
                    HtmlBar(bytes.get<double>() / most)});
  }
  return "<div><h2>Memory at the peak</h2>\n" + HtmlTable(rows) + "</div>\n";
}

// Planned seconds of an update by operator, longest first.
std::vector<std::pair<std::string, double>> SecondsByOperator(const Json& plan) {
  std::map<std::string, double> by_operator;
  if (!plan.is_object() || !plan.contains("nodes") || !plan.at("nodes").is_array()) return {};
  for (const Json& node : plan.at("nodes")) {
    const std::string step = TextOf(node, "step");
    if (step == "eval" || step == "infer") continue;
    by_operator[TextOf(node, "op")] += NumberOf(node, "s") * std::max(1.0, NumberOf(node, "runs"));
  }
  std::vector<std::pair<std::string, double>> sorted(by_operator.begin(), by_operator.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string TimeByOperator(const Json& plan) {
  constexpr size_t kMost = 10;
  const auto operators = SecondsByOperator(plan);
  double all = 0, others = 0;
  for (const auto& [name, seconds] : operators) all += seconds;
  if (all <= 0) return "";
  Rows rows = {{"operator", "a step, planned", "share", ""}};
  const auto add = [&](const std::string& name, double seconds) {
    rows.push_back({HtmlEscaped(name), FormatSeconds(seconds), FormatPercent(seconds / all),
                    HtmlBar(seconds / all)});
  };
  for (size_t i = 0; i < operators.size(); ++i) {
    if (i < kMost) {
      add(operators[i].first, operators[i].second);
    } else {
      others += operators[i].second;
    }
  }
  if (operators.size() > kMost) add(fmt::format("{} others", operators.size() - kMost), others);
  return "<div><h2>Where the time of a step goes</h2>\n" + HtmlTable(rows) + "</div>\n";
}

std::string TimeOfRun(const RunOverview& run) {
  if (!run.summary || run.summary->wall_s <= 0) return "";
  const double wall_s = run.summary->wall_s;
  const double steps_s =
      std::min(wall_s, static_cast<double>(run.summary->steps) * run.summary->measured.step_s);
  Rows rows = {{"", "time", "share", ""}};
  const auto add = [&](const char* name, double seconds) {
    rows.push_back(
        {name, FormatSeconds(seconds), FormatPercent(seconds / wall_s), HtmlBar(seconds / wall_s)});
  };
  add("steps", steps_s);
  add("evaluations, checkpoints, start", wall_s - steps_s);
  return "<div><h2>Where the time of the run goes</h2>\n" + HtmlTable(rows) + "</div>\n";
}

// ---- evaluation

std::string ShareText(const std::optional<double>& value) {
  return value ? FormatPercent(*value) : "";
}

std::string BoxClasses(const EvaluationRecord& evaluation) {
  Rows rows = {{"class", "boxes", "AP50", "", "AP50-95"}};
  for (const ClassMetrics& one : evaluation.classes)
    rows.push_back({HtmlEscaped(one.name), FormatInteger(one.support), ShareText(one.ap50),
                    HtmlBar(one.ap50.value_or(0)), ShareText(one.ap50_95)});
  return HtmlTable(rows);
}

std::string Classes(const EvaluationRecord& evaluation) {
  if (evaluation.boxes) return BoxClasses(evaluation);
  const bool pixels = evaluation.pixels;
  Rows rows = {
      {"class", pixels ? "pixels" : "samples", "precision", "recall", "", pixels ? "Dice" : "F1"}};
  if (pixels) rows[0].push_back("IoU");
  for (const ClassMetrics& one : evaluation.classes) {
    rows.push_back({HtmlEscaped(one.name), FormatInteger(one.support), ShareText(one.precision),
                    ShareText(one.recall), HtmlBar(one.recall.value_or(0)), ShareText(one.f1)});
    if (pixels) rows.back().push_back(ShareText(one.iou));
  }
  return HtmlTable(rows);
}

std::string Confusion(const EvaluationRecord& evaluation) {
  constexpr size_t kMostClasses = 64;
  const size_t n = evaluation.classes.size();
  if (n > kMostClasses || evaluation.confusion.size() != n * n) return "";
  std::vector<std::string> names;
  for (const ClassMetrics& one : evaluation.classes) names.push_back(one.name);
  return "<p class=\"soft\">A row a class; columns are what it was taken for.</p>\n" +
         SvgConfusion(names, evaluation.confusion);
}

std::string Metrics(const EvaluationRecord& evaluation) {
  std::string text = fmt::format("loss {:.4f}", evaluation.loss);
  if (evaluation.accuracy)
    text += (evaluation.pixels ? ", pixel accuracy " : ", accuracy ") +
            FormatPercent(*evaluation.accuracy);
  for (const auto& [name, value] : evaluation.metrics)
    text += ", " + HtmlEscaped(MetricText(name, value));
  return fmt::format("<p>{} samples of {} at step {}: {}</p>\n", FormatInteger(evaluation.samples),
                     HtmlEscaped(evaluation.data), evaluation.step, text);
}

std::string Wrong(const EvaluationRecord& evaluation) {
  if (evaluation.wrong.empty()) return "";
  std::string text;
  for (const WrongRecord& one : evaluation.wrong) {
    text += fmt::format(
        "<div>{}<b class=\"bad\">{}</b> {}<br>is <b>{}</b><br><span "
        "class=\"soft\">{}</span></div>\n",
        one.picture ? HtmlPicture(ToRgb(*one.picture), one.label, one.origin) : "",
        HtmlEscaped(one.said), FormatPercent(one.probability), HtmlEscaped(one.label),
        HtmlEscaped(one.origin));
  }
  return "<h2>Wrong, most confident first</h2>\n<div class=\"wrong\">\n" + text + "</div>\n";
}

std::string Evaluation(const std::optional<EvaluationRecord>& evaluation) {
  if (!evaluation) return "";
  std::string text = "<h2>Evaluation</h2>\n" + Metrics(*evaluation);
  if (!evaluation->classes.empty())
    text += "<div class=\"side\"><div>\n" + Classes(*evaluation) + "</div><div>\n" +
            Confusion(*evaluation) + "</div></div>\n";
  return text + Wrong(*evaluation);
}

// ---- options

// Those that are not the defaults.
std::string Options(const TrainOptions& options) {
  const Json given = Json::parse(OptionsToJson(options)), usual = Json::parse(OptionsToJson({}));
  Rows rows = {{"option", "value"}};
  for (const auto& [key, value] : given.items()) {
    if (usual.contains(key) && usual.at(key) == value) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    rows.push_back({HtmlEscaped(key), HtmlEscaped(text)});
  }
  return "<details><summary>Options</summary>\n" + HtmlTable(rows, /*texts=*/true) + "</details>\n";
}

}  // namespace

Result<std::string> RunPage(const std::string& folder) {
  RIDGE_ASSIGN_OR_RETURN(const Told told, ReadTold(folder));
  std::string body = Head(told) + Findings(told) + Charts(told.curves);
  body += "<div class=\"side\">\n" + PlanAgainstMeasured(told.run) + TimeOfRun(told.run) +
          TimeByOperator(told.plan) + MemoryByPurpose(told.plan) + "</div>\n";
  body += Evaluation(told.evaluation) + Options(told.run.options);
  if (told.run.summary)
    body += fmt::format("<p class=\"soft\">ridge {}, parameters {}</p>\n",
                        HtmlEscaped(told.run.summary->ridge_version),
                        HtmlEscaped(told.run.summary->parameters_sha256));
  return HtmlPage(told.run.folder, body, kStyle);
}

}  // namespace ridge
