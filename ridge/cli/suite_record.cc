#include "ridge/cli/suite_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/core/version.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarColumns = 14;

// The fields of a run, once for reading and writing.
struct Field {
  const char* name;
  double SuiteRun::*value;
};
constexpr Field kFields[] = {{"ms_min", &SuiteRun::ms_min},
                             {"ms_med", &SuiteRun::ms_med},
                             {"first_step_s", &SuiteRun::first_step_s},
                             {"peak_mb", &SuiteRun::peak_mb},
                             {"peak_flops_per_s", &SuiteRun::peak_flops_per_s},
                             {"bytes_per_s", &SuiteRun::bytes_per_s},
                             {"flops_floor_s", &SuiteRun::flops_floor_s},
                             {"roofline_step_s", &SuiteRun::roofline_step_s}};

std::string SystemName() {
  utsname name;
  if (uname(&name) != 0) return "";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

SuiteRun RunFromJson(const Json& json) {
  SuiteRun run;
  for (const Field& field : kFields) run.*field.value = json.at(field.name).get<double>();
  return run;
}

double FloorShare(const SuiteRun& run) {
  return run.ms_min > 0 ? run.flops_floor_s / (run.ms_min / 1e3) : 0;
}

std::string SlowdownText(const std::optional<double>& slowdown) {
  return slowdown ? FormatPercentChange(*slowdown) : "";
}

}  // namespace

Result<SuiteRun> ParseSuiteRun(const std::string& json) {
  try {
    return RunFromJson(Json::parse(json));
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("bench suite: a run printed no figures: {}", error.what()));
  }
}

SuiteRecord NewSuiteRecord(const std::string& device, int64_t threads) {
  SuiteRecord record;
  record.version = kRidgeVersion;
  record.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  record.device = device;
  record.system = SystemName();
  record.threads = threads;
  return record;
}

void AddRun(const std::string& workload, const SuiteRun& run, SuiteRecord& record) {
  const auto [found, is_new] = record.best.emplace(workload, run);
  if (is_new) {
    record.order.push_back(workload);
    return;
  }
  SuiteRun& best = found->second;
  best.ms_min = std::min(best.ms_min, run.ms_min);
  best.ms_med = std::min(best.ms_med, run.ms_med);
  best.first_step_s = std::min(best.first_step_s, run.first_step_s);
  best.peak_mb = std::max(best.peak_mb, run.peak_mb);
  best.peak_flops_per_s = std::max(best.peak_flops_per_s, run.peak_flops_per_s);
  best.bytes_per_s = std::max(best.bytes_per_s, run.bytes_per_s);
  best.flops_floor_s = std::min(best.flops_floor_s, run.flops_floor_s);
  best.roofline_step_s = std::min(best.roofline_step_s, run.roofline_step_s);
}

std::optional<double> SlowdownVsBaseline(const std::string& workload, const SuiteRecord& now,
                                         const SuiteRecord& before) {
  const auto new_run = now.best.find(workload), old_run = before.best.find(workload);
  if (new_run == now.best.end() || old_run == before.best.end()) return std::nullopt;
  const SuiteRun &is = new_run->second, &was = old_run->second;
  if (was.ms_min <= 0 || is.peak_flops_per_s <= 0 || is.bytes_per_s <= 0) return std::nullopt;
  const double arithmetic =
      was.roofline_step_s > 0 ? std::min(1.0, was.flops_floor_s / was.roofline_step_s) : 1;
  const double machine = arithmetic * was.peak_flops_per_s / is.peak_flops_per_s +
                         (1 - arithmetic) * was.bytes_per_s / is.bytes_per_s;
  return is.ms_min / was.ms_min / machine - 1;
}

std::vector<std::string> Regressions(const SuiteRecord& now, const SuiteRecord& before) {
  std::vector<std::string> found;
  for (const std::string& workload : now.order) {
    const std::optional<double> slowdown = SlowdownVsBaseline(workload, now, before);
    if (!slowdown || *slowdown <= kMostSlowdown) continue;
    found.push_back(fmt::format(
        "{} has become slower: {} against {} before, {} once the machine is taken out", workload,
        FormatSeconds(now.best.at(workload).ms_min / 1e3),
        FormatSeconds(before.best.at(workload).ms_min / 1e3), FormatPercentChange(*slowdown)));
  }
  return found;
}

std::string SuiteToJson(const SuiteRecord& record, const SuiteRecord* before) {
  Json json = {
      {"ver", record.version},
      {"date", record.date},
      {"machine",
       {{"device", record.device}, {"system", record.system}, {"threads", record.threads}}},
      {"rounds", record.rounds},
      {"workloads", Json::object()}};
  for (const std::string& workload : record.order) {
    const SuiteRun& run = record.best.at(workload);
    Json entry;
    for (const Field& field : kFields) entry[field.name] = run.*field.value;
    entry["flops_floor_share"] = FloorShare(run);
    if (before != nullptr) {
      const std::optional<double> slowdown = SlowdownVsBaseline(workload, record, *before);
      entry["growth"] = slowdown ? Json(*slowdown) : Json();
    }
    json["workloads"][workload] = std::move(entry);
  }
  return json.dump(1) + "\n";
}

Result<SuiteRecord> SuiteFromJson(const std::string& text, const std::string& file) {
  try {
    const Json json = Json::parse(text);
    SuiteRecord record;
    record.version = json.at("ver").get<std::string>();
    record.date = json.at("date").get<std::string>();
    record.device = json.at("machine").at("device").get<std::string>();
    record.threads = json.at("machine").at("threads").get<int64_t>();
    for (const auto& [workload, run] : json.at("workloads").items()) {
      record.order.push_back(workload);
      record.best[workload] = RunFromJson(run);
    }
    return record;
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: is no record of `ridge bench suite`: {}", file, error.what()));
  }
}

std::string SuiteReport(const SuiteRecord& record, const SuiteRecord* before,
                        const Terminal& terminal) {
  std::vector<Column> columns = {{"workload"},
                                 {"step", Align::kRight},
                                 {"median", Align::kRight},
                                 {"first step", Align::kRight},
                                 {"peak", Align::kRight},
                                 {"FLOPs floor", Align::kRight},
                                 {""}};
  if (before != nullptr) columns.push_back({"growth", Align::kRight});
  Table table(columns);
  for (const std::string& workload : record.order) {
    const SuiteRun& run = record.best.at(workload);
    std::vector<std::string> cells = {
        workload,
        FormatSeconds(run.ms_min / 1e3),
        FormatSeconds(run.ms_med / 1e3),
        FormatSeconds(run.first_step_s),
        fmt::format("{:.1f} MB", run.peak_mb),
        FormatPercent(FloorShare(run)),
        BarText(std::min(1.0, FloorShare(run)), kBarColumns, terminal.unicode)};
    const auto slowdown =
        before == nullptr ? std::nullopt : SlowdownVsBaseline(workload, record, *before);
    if (before != nullptr) cells.push_back(SlowdownText(slowdown));
    table.AddRow(cells, slowdown && *slowdown > kMostSlowdown ? Style::kRed : Style::kPlain);
  }
  std::string text = fmt::format("{}, best of {} round{}\n\n", record.device, record.rounds,
                                 record.rounds == 1 ? "" : "s");
  text += table.ToText(terminal);
  if (before != nullptr) {
    text +=
        fmt::format("\ngrowth: against {} ({}), with the machine's own change in rate taken out\n",
                    before->date, before->device);
  }
  return text;
}

}  // namespace ridge::cli
