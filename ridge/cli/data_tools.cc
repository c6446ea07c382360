#include "ridge/cli/data_tools.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "ridge/cli/output.h"
#include "ridge/core/files.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/data/augment_source.h"
#include "ridge/data/disk_cache.h"
#include "ridge/measure/time_data.h"
#include "ridge/report/table.h"
#include "ridge/train/job/decoded_cache.h"
#include "ridge/use/contact_sheet.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

uint64_t SeedOf(const DataTools& tools) { return static_cast<uint64_t>(tools.seed.value_or(0)); }

Status WriteSheet(const DataTools& tools, const std::string& spec, const Source& source,
                  const Preprocessing* preprocessing) {
  const std::string& file = *tools.sheet;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<SheetRow> rows,
                         PickSheet(source, preprocessing, SeedOf(tools)));
  if (rows.empty())
    return Status(ErrorCode::kInvalidData, spec + ": no sample can be read for a contact sheet");
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(
      file, file.ends_with(".png") ? EncodePng(DrawSheet(rows)) : SheetHtml(spec, rows)));
  int64_t samples = 0;
  for (const SheetRow& row : rows) samples += static_cast<int64_t>(row.pictures.size());
  const std::string classes = rows.size() == 1 ? "1 class" : fmt::format("{} classes", rows.size());
  PrintTalk(fmt::format("{}: {} of {}\n", file, FormatCountOf(samples, "sample"),
                        rows.front().title.empty() ? spec : classes));
  return Status();
}

double MicrosecondsOf(const DataBench& bench, size_t stage) {
  return 1e6 * bench.one_core.seconds[stage] / static_cast<double>(bench.one_core.samples);
}

void PrintBench(const DataBench& bench, const Terminal& terminal) {
  Table table({{"stage"},
               {"time a sample", Align::kRight},
               {"share", Align::kRight},
               {"samples/s", Align::kRight}});
  for (size_t s = 0; s < kInputStages; ++s) {
    const double us = MicrosecondsOf(bench, s);
    if (us <= 0) continue;
    const auto stage = static_cast<InputStage>(s);
    table.AddRow({InputStageName(stage), FormatSeconds(us / 1e6),
                  FormatPercent(bench.one_core.Share(stage)), FormatCount(1e6 / us)});
  }
  table.AddRule();
  table.AddRow({"one core", FormatSeconds(1 / bench.one_core_samples_s), "",
                FormatCount(bench.one_core_samples_s)});
  if (bench.workers > 1) {
    table.AddRow({fmt::format("{} workers", bench.workers), FormatSeconds(1 / bench.samples_s), "",
                  FormatCount(bench.samples_s)});
  }
  PrintData(table.ToText(terminal));
  PrintData(fmt::format("\n{} of the training set, the fastest of several passes\n",
                        FormatCountOf(bench.samples, "sample")));
}

std::string BenchJson(const DataBench& bench) {
  Json stages = Json::array();
  for (size_t s = 0; s < kInputStages; ++s) {
    const auto stage = static_cast<InputStage>(s);
    stages.push_back({{"stage", InputStageName(stage)},
                      {"sample_us", MicrosecondsOf(bench, s)},
                      {"share", bench.one_core.Share(stage)}});
  }
  const Json json = {{"samples", bench.samples},
                     {"stages", stages},
                     {"one_core_samples_s", bench.one_core_samples_s},
                     {"workers", bench.workers},
                     {"samples_s", bench.samples_s}};
  return json.dump(1) + "\n";
}

Status RunBench(const DataTools& tools, const SourcePtr& source, bool json,
                const Terminal& terminal) {
  DataBenchOptions options;
  options.workers = static_cast<int>(tools.workers.value_or(AvailableThreads()));
  options.seed = SeedOf(tools);
  RIDGE_ASSIGN_OR_RETURN(const DataBench bench, BenchData(source, options));
  if (json)
    PrintData(BenchJson(bench));
  else
    PrintBench(bench, terminal);
  return Status();
}

std::string DayOf(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

void PrintCaches(const std::vector<DiskCacheFile>& files, const Terminal& terminal) {
  constexpr size_t kShown = 12;  // of a name's 64 digits
  Table table({{"cache"}, {"samples", Align::kRight}, {"size", Align::kRight}, {"written"}});
  for (const DiskCacheFile& file : files) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    table.AddRow({name.substr(0, kShown) + "...",
                  file.samples > 0 ? FormatInteger(file.samples) : "not whole",
                  FormatBytes(file.file_bytes), DayOf(file.written_s)});
  }
  PrintData(table.ToText(terminal));
}

Json CachesJson(const std::string& folder, const std::vector<DiskCacheFile>& files, bool removed) {
  Json json = {{"folder", folder}, {"removed", removed}, {"caches", Json::array()}};
  for (const DiskCacheFile& file : files) {
    json["caches"].push_back({{"file", file.path},
                              {"samples", file.samples},
                              {"bytes", file.file_bytes},
                              {"written_s", file.written_s}});
  }
  return json;
}

}  // namespace

Status CheckTools(const DataTools& tools) {
  if (tools.sheet && !tools.sheet->ends_with(".png") && !tools.sheet->ends_with(".html")) {
    return InvalidArgument(
        fmt::format("data: --contact-sheet '{}' must end in .png or .html", *tools.sheet));
  }
  if (tools.augment && !tools.any())
    return InvalidArgument("data: --augment is for --contact-sheet and --bench");
  if (tools.workers && !tools.bench) return InvalidArgument("data: --workers is for --bench");
  return Status();
}

Status RunTools(const DataTools& tools, const std::string& spec, const DataSplits& splits,
                bool json, const Terminal& terminal) {
  SourcePtr source = splits.train;
  if (tools.augment) {
    RIDGE_ASSIGN_OR_RETURN(source, AugmentTraining(source, *tools.augment, SeedOf(tools)));
  }
  if (tools.sheet)
    RIDGE_RETURN_IF_ERROR(WriteSheet(tools, spec, *source, splits.preprocessing.get()));
  if (tools.bench) RIDGE_RETURN_IF_ERROR(RunBench(tools, source, json, terminal));
  return Status();
}

Status CheckCaches(const DataTools& tools, const std::optional<std::string>& spec) {
  const char* const flag = tools.clean_caches ? "--cache-clean" : "--cache-list";
  if (tools.clean_caches && tools.list_caches)
    return InvalidArgument("--cache-clean lists what it removes. hint: leave --cache-list out");
  if (!spec && !tools.any()) return Status();
  return InvalidArgument(
      fmt::format("{} is about the files of all data; it takes no {}. hint: leave it out", flag,
                  spec ? "SPEC" : "other tool"));
}

Status RunCaches(const DataTools& tools, bool json, const Terminal& terminal) {
  const std::string folder = SampleCacheFolder();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<DiskCacheFile> files, ListDiskCaches(folder));
  int64_t bytes = 0;
  for (const DiskCacheFile& file : files) {
    if (tools.clean_caches) RIDGE_RETURN_IF_ERROR(RemoveDiskCache(file));
    bytes += file.file_bytes;
  }
  if (json) {
    PrintData(CachesJson(folder, files, tools.clean_caches).dump(1) + "\n");
    return Status();
  }
  if (!files.empty()) PrintCaches(files, terminal);
  const std::string count =
      files.empty()
          ? "no caches"
          : fmt::format("{}, {}{}", FormatCountOf(static_cast<int64_t>(files.size()), "cache"),
                        FormatBytes(bytes), tools.clean_caches ? ", removed" : "");
  PrintData(fmt::format("{}: {}\n", folder, count));
  return Status();
}

}  // namespace ridge::cli
