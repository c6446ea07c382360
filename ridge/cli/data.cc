// `ridge data`: what is in a data set before a model sees it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/data_tools.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/data/survey.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostClasses = 40;  // bars; more are in the JSON
constexpr size_t kMostBad = 10;
constexpr double kImbalance = 10;  // largest class over smallest from where it is told

struct DataVerb {
  std::optional<std::string> spec;
  OutputFlags output;
  DataTools tools;
  bool all = false;
  bool json = false;
};

std::string Number(double value) { return fmt::format("{:.4g}", value); }

void PrintSets(const DataSurvey& survey, const Terminal& terminal) {
  Table table(
      {{"set"}, {"samples", Align::kRight}, {"read", Align::kRight}, {"bad", Align::kRight}});
  for (const SetSurvey& set : survey.sets) {
    table.AddRow({set.name, FormatInteger(set.samples), FormatInteger(set.read),
                  FormatInteger(static_cast<int64_t>(set.bad.size()))});
  }
  PrintData(table.ToText(terminal));
}

void PrintClasses(const SetSurvey& set, const Terminal& terminal) {
  if (set.classes.empty()) return;
  std::vector<Bar> bars;
  for (const ClassCount& one : set.classes) {
    if (bars.size() == kMostClasses) break;
    bars.push_back({one.name, static_cast<double>(one.samples), FormatInteger(one.samples)});
  }
  PrintData(fmt::format("\nClasses of the {} set\n", set.name));
  PrintData(BarChart(bars, terminal));
  if (set.classes.size() > bars.size())
    PrintData(fmt::format("  {} more: --json\n", set.classes.size() - bars.size()));
  const auto fewer = [](const ClassCount& a, const ClassCount& b) { return a.samples < b.samples; };
  const auto [least, most] = std::minmax_element(set.classes.begin(), set.classes.end(), fewer);
  if (static_cast<double>(most->samples) < kImbalance * static_cast<double>(least->samples)) return;
  PrintData(fmt::format("  '{}' has {} and '{}' {}: accuracy alone says little here\n", most->name,
                        FormatCountOf(most->samples, "sample"), least->name, least->samples));
}

// Pixels by class, and in how many masks each class is.
void PrintMasks(const SetSurvey& set, const Terminal& terminal) {
  int64_t pixels = set.ignored_pixels;
  for (const ClassCount& one : set.classes) pixels += one.pixels;
  const auto share = [&](int64_t part) {
    return FormatPercent(static_cast<double>(part) /
                         static_cast<double>(std::max<int64_t>(pixels, 1)));
  };
  Table table(
      {{"class"}, {"pixels", Align::kRight}, {"share", Align::kRight}, {"masks", Align::kRight}});
  for (const ClassCount& one : set.classes) {
    if (static_cast<size_t>(one.index) == kMostClasses) break;
    table.AddRow(
        {one.name, FormatInteger(one.pixels), share(one.pixels), FormatInteger(one.samples)});
  }
  table.AddRow({"ignored", FormatInteger(set.ignored_pixels), share(set.ignored_pixels), ""});
  PrintData(fmt::format("\nPixels of the {} set, as they are resized\n", set.name));
  PrintData(table.ToText(terminal));
  if (set.classes.size() > kMostClasses)
    PrintData(fmt::format("  {} more: --json\n", set.classes.size() - kMostClasses));
}

void PrintFields(const SetSurvey& set, const Terminal& terminal) {
  Table table({{"field"},
               {"type"},
               {"least", Align::kRight},
               {"largest", Align::kRight},
               {"mean", Align::kRight},
               {"deviation", Align::kRight},
               {"not finite", Align::kRight}});
  for (const FieldSurvey& field : set.fields) {
    table.AddRow({field.field.name, TypeToString(field.field.type), Number(field.least),
                  Number(field.most), Number(field.mean), Number(field.deviation),
                  FormatInteger(field.not_finite)});
  }
  PrintData(fmt::format("\nFields of the {} set\n", set.name));
  PrintData(table.ToText(terminal));
}

std::string ColumnRange(const ColumnSurvey& column) {
  if (column.column.kind != ColumnKind::kCategory)
    return Number(column.least) + " to " + Number(column.most);
  std::string text;
  for (size_t i = 0; i < column.counts.size(); ++i) {
    if (i == 6) return text + ", ...";
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", column.column.values[i], column.counts[i]);
  }
  return text;
}

void PrintColumns(const SetSurvey& set, const Terminal& terminal) {
  if (set.columns.empty()) return;
  Table table({{"column"}, {"missing", Align::kRight}, {"values"}});
  for (const ColumnSurvey& column : set.columns)
    table.AddRow({column.column.name, FormatInteger(column.missing), ColumnRange(column)});
  PrintData(fmt::format("\nColumns of the {} set\n", set.name));
  PrintData(table.ToText(terminal));
}

std::string SizeText(const ImageSize& size) {
  return fmt::format("{}x{}", size.height, size.width);
}

void PrintPictures(const SetSurvey& set) {
  if (!set.pictures) return;
  const PictureSurvey& pictures = *set.pictures;
  std::string formats;
  for (const auto& [format, count] : pictures.formats)
    formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", FormatInteger(count), format);
  PrintData(
      fmt::format("\nPictures of the {} set: {}; height x width from {} ({}) by {} in the "
                  "middle to {} ({})\n",
                  set.name, formats, SizeText(pictures.smallest), pictures.smallest_file,
                  SizeText(pictures.median), SizeText(pictures.largest), pictures.largest_file));
}

// "12 of 16000, 3 of 44100"
template <typename Key>
std::string CountsText(const std::vector<std::pair<Key, int64_t>>& counts, const char* format) {
  std::string text;
  for (const auto& [key, count] : counts) {
    text += text.empty() ? "" : ", ";
    text += fmt::format(fmt::runtime(format), FormatInteger(count), key);
  }
  return text;
}

void PrintSounds(const SetSurvey& set) {
  if (!set.sounds) return;
  const SoundSurvey& sounds = *set.sounds;
  PrintData(fmt::format(
      "\nSounds of the {} set: {}; {} samples a second; {}\n  from {:.4g} s ({}) by {:.4g} s in "
      "the "
      "middle to {:.4g} s ({}), {:.4g} s in all\n",
      set.name, CountsText(sounds.formats, "{} {}"), CountsText(sounds.rates, "{} of {}"),
      CountsText(sounds.channels, "{} of {} channels"), sounds.shortest_s, sounds.shortest_file,
      sounds.median_s, sounds.longest_s, sounds.longest_file, sounds.total_s));
}

void PrintTranscripts(const SetSurvey& set) {
  if (!set.transcripts) return;
  const TranscriptSurvey& texts = *set.transcripts;
  std::string spelled;
  for (const auto& [letter, count] : texts.spelled)
    spelled += fmt::format("{}'{}' {}", spelled.empty() ? "" : ", ", letter, FormatInteger(count));
  if (texts.others > 0) spelled += fmt::format(", unknown {}", FormatInteger(texts.others));
  PrintData(fmt::format(
      "\nTranscripts of the {} set: {} words, {} letters; from {} letters by {} in the middle to "
      "{}\n  {}\n",
      set.name, FormatInteger(texts.words), FormatInteger(texts.letters), texts.shortest,
      texts.median, texts.longest, spelled));
}

void PrintTexts(const SetSurvey& set) {
  if (!set.texts) return;
  const TextSurvey& texts = *set.texts;
  PrintData(fmt::format(
      "\nTexts of the {} set: {} of {} by {} in the middle to {} tokens, {} in all; rows of {}\n"
      "  a row each: {} of {} is padding; packed: {} of {}{}\n",
      set.name, FormatInteger(texts.shares.texts), FormatInteger(texts.shortest),
      FormatInteger(texts.median), FormatInteger(texts.longest), FormatInteger(texts.shares.tokens),
      FormatInteger(texts.length), FormatPercent(texts.shares.alone),
      FormatCountOf(texts.shares.texts, "row"), FormatPercent(texts.shares.packed),
      FormatCountOf(texts.shares.rows, "row"), texts.is_packed ? "" : " (packing=on)"));
}

void PrintClouds(const SetSurvey& set) {
  if (!set.clouds) return;
  const CloudSurvey& clouds = *set.clouds;
  PrintData(fmt::format(
      "\nPoint clouds of the {} set: {}; from {} points ({}) by {} in the middle to {} ({})\n",
      set.name, CountsText(clouds.formats, "{} {}"), FormatInteger(clouds.fewest),
      clouds.smallest_file, FormatInteger(clouds.median), FormatInteger(clouds.most),
      clouds.largest_file));
}

void PrintDuplicates(const DataSurvey& survey) {
  for (const DuplicateSurvey& same : survey.duplicates) {
    const bool within = same.in == same.of, one = same.samples == 1;
    std::string text =
        fmt::format("\n{} of the {} set {}", FormatCountOf(same.samples, "sample"), same.in,
                    within ? (one ? "equals an earlier one" : "equal an earlier one")
                           : fmt::format("{} in the {} set too", one ? "is" : "are", same.of));
    if (same.other_labels > 0) text += fmt::format(", {} with another label", same.other_labels);
    PrintData(text + ":\n");
    for (const SamplePair& pair : same.first) PrintData(fmt::format("  {} = {}\n", pair.a, pair.b));
  }
}

void PrintBad(const DataSurvey& survey) {
  size_t shown = 0;
  for (const SetSurvey& set : survey.sets) {
    for (const BadSample& bad : set.bad) {
      if (shown++ == kMostBad) return PrintData("  more: --json\n");
      PrintData(fmt::format("{}  {}\n", shown == 1 ? "\nCannot be read\n" : "", bad.reason));
    }
  }
}

void PrintSurvey(const DataSurvey& survey, const Terminal& terminal) {
  PrintSets(survey, terminal);
  const SetSurvey& first = survey.sets.front();
  if (first.has_masks)
    PrintMasks(first, terminal);
  else
    PrintClasses(first, terminal);
  PrintColumns(first, terminal);
  PrintFields(first, terminal);
  PrintPictures(first);
  PrintSounds(first);
  PrintTranscripts(first);
  PrintTexts(first);
  PrintClouds(first);
  PrintDuplicates(survey);
  PrintBad(survey);
  if (!survey.whole()) PrintData("\nEvenly spaced samples were read; --all reads every one.\n");
}

Json FieldsJson(const SetSurvey& set) {
  Json fields = Json::array();
  for (const FieldSurvey& field : set.fields) {
    fields.push_back({{"name", field.field.name},
                      {"type", TypeToString(field.field.type)},
                      {"least", field.least},
                      {"largest", field.most},
                      {"mean", field.mean},
                      {"deviation", field.deviation},
                      {"not_finite", field.not_finite}});
  }
  return fields;
}

template <typename Key>
Json CountsJson(const std::vector<std::pair<Key, int64_t>>& counts) {
  Json json = Json::object();
  for (const auto& [key, count] : counts) json[fmt::format("{}", key)] = count;
  return json;
}

Json PicturesJson(const PictureSurvey& pictures) {
  return {{"formats", CountsJson(pictures.formats)},
          {"smallest", SizeText(pictures.smallest)},
          {"median", SizeText(pictures.median)},
          {"largest", SizeText(pictures.largest)}};
}

Json SoundsJson(const SoundSurvey& sounds) {
  return {{"formats", CountsJson(sounds.formats)},
          {"rates", CountsJson(sounds.rates)},
          {"channels", CountsJson(sounds.channels)},
          {"shortest_s", sounds.shortest_s},
          {"median_s", sounds.median_s},
          {"longest_s", sounds.longest_s},
          {"total_s", sounds.total_s}};
}

Json TranscriptsJson(const TranscriptSurvey& texts) {
  return {{"words", texts.words},       {"letters", texts.letters},
          {"shortest", texts.shortest}, {"median", texts.median},
          {"longest", texts.longest},   {"spelled", CountsJson(texts.spelled)},
          {"unknown", texts.others}};
}

Json TextsJson(const TextSurvey& texts) {
  return {{"length", texts.length},           {"packed", texts.is_packed},
          {"texts", texts.shares.texts},      {"tokens", texts.shares.tokens},
          {"shortest", texts.shortest},       {"median", texts.median},
          {"longest", texts.longest},         {"padding", texts.shares.alone},
          {"packed_rows", texts.shares.rows}, {"packed_padding", texts.shares.packed}};
}

Json CloudsJson(const CloudSurvey& clouds) {
  return {{"formats", CountsJson(clouds.formats)},
          {"fewest", clouds.fewest},
          {"median", clouds.median},
          {"most", clouds.most}};
}

Json SetJson(const SetSurvey& set) {
  Json json = {{"set", set.name},           {"samples", set.samples},   {"read", set.read},
               {"fields", FieldsJson(set)}, {"classes", Json::array()}, {"bad", Json::array()}};
  for (const ClassCount& one : set.classes) {
    json["classes"].push_back({{"class", one.index}, {"name", one.name}, {"samples", one.samples}});
    if (set.has_masks) json["classes"].back()["pixels"] = one.pixels;
  }
  if (set.has_masks) json["ignored_pixels"] = set.ignored_pixels;
  for (const BadSample& bad : set.bad)
    json["bad"].push_back({{"sample", bad.origin}, {"reason", bad.reason}});
  for (const ColumnSurvey& column : set.columns) {
    json["columns"].push_back({{"name", column.column.name},
                               {"missing", column.missing},
                               {"values", ColumnRange(column)}});
  }
  if (set.pictures) json["pictures"] = PicturesJson(*set.pictures);
  if (set.sounds) json["sounds"] = SoundsJson(*set.sounds);
  if (set.transcripts) json["transcripts"] = TranscriptsJson(*set.transcripts);
  if (set.texts) json["texts"] = TextsJson(*set.texts);
  if (set.clouds) json["clouds"] = CloudsJson(*set.clouds);
  return json;
}

std::string SurveyJson(const DataSurvey& survey, const std::vector<std::string>& notes) {
  Json json = {{"sets", Json::array()}, {"duplicates", Json::array()}, {"notes", notes}};
  for (const SetSurvey& set : survey.sets) json["sets"].push_back(SetJson(set));
  for (const DuplicateSurvey& same : survey.duplicates) {
    Json pairs = Json::array();
    for (const SamplePair& pair : same.first) pairs.push_back({pair.a, pair.b});
    json["duplicates"].push_back({{"in", same.in},
                                  {"of", same.of},
                                  {"samples", same.samples},
                                  {"other_labels", same.other_labels},
                                  {"first", pairs}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<int> RunData(const CLI::App& app, const DataVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  if (verb.tools.caches()) {
    RIDGE_RETURN_IF_ERROR(CheckCaches(verb.tools, verb.spec));
    RIDGE_RETURN_IF_ERROR(RunCaches(verb.tools, verb.json, terminal));
    return kExitOk;
  }
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.spec, "SPEC", "ridge data photos"));
  RIDGE_RETURN_IF_ERROR(CheckTools(verb.tools));
  RIDGE_ASSIGN_OR_RETURN(const DataSplits splits, OpenData(*verb.spec));
  for (const std::string& note : splits.notes) PrintWarning(note);
  if (verb.tools.any()) {
    RIDGE_RETURN_IF_ERROR(RunTools(verb.tools, *verb.spec, splits, verb.json, terminal));
    return kExitOk;
  }
  SurveyOptions options;
  options.all = verb.all;
  options.threads = AvailableThreads();
  RIDGE_ASSIGN_OR_RETURN(const DataSurvey survey, SurveyData(splits, options));
  if (verb.json)
    PrintData(SurveyJson(survey, splits.notes));
  else
    PrintSurvey(survey, terminal);
  return kExitOk;
}

}  // namespace

VerbBody AddData(CLI::App& app) {
  auto verb = std::make_shared<DataVerb>();
  AddArgument(app, "SPEC", verb->spec, "What --data of a training takes");
  AddSwitch(app, "--all", verb->all,
            "Read every sample, also where that takes long (else 2,000 a set)");
  AddText(app, "--contact-sheet", verb->tools.sheet, "FILE",
          "Write FILE.png or FILE.html: training samples of each class");
  AddSwitch(app, "--bench", verb->tools.bench, "Time how fast samples are read, by stage");
  AddText(app, "--augment", verb->tools.augment, "LIST",
          "Random transforms for both, as of a training: flip,crop:4 (none)");
  AddInteger(app, "--workers", verb->tools.workers, {.minimum = 1, .maximum = 1024}, "N",
             "Threads that --bench reads with, beside one (the cores that may be used)");
  AddInteger(app, "--seed", verb->tools.seed, {}, "N", "Of the choice of samples (0)");
  AddSwitch(app, "--cache-list", verb->tools.list_caches, "List the files of --cache disk");
  AddSwitch(app, "--cache-clean", verb->tools.clean_caches, "Remove the files of --cache disk");
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [&app, verb] { return RunData(app, *verb); };
}

}  // namespace ridge::cli
