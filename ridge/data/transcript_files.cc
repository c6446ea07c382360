#include "ridge/data/transcript_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "ridge/core/split.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/csv_reader.h"
#include "ridge/data/json_line.h"
#include "ridge/data/text_records.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr size_t kMostTranscripts = size_t{1} << 27;

Status Bad(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

Names SoundNames(const TranscriptNames& names) {
  if (!names.sound.empty()) return {names.sound};
  return {"audio_filepath", "path", "audio", "file", "file_name", "wav_filename"};
}
Names TextNames(const TranscriptNames& names) {
  if (!names.text.empty()) return {names.text};
  return {"text", "sentence", "transcript", "transcription"};
}

bool Holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// "dir/x.jsonl" -> "dir/", "x.jsonl" -> ""
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// One file's lines to transcripts.
class Collector {
 public:
  Collector(const std::string& path, const std::string& sounds, const BadRecordsPtr& bad_records,
            std::vector<Transcript>& all)
      : path_(path),
        folder_(sounds.empty() ? FolderOf(path) : sounds + "/"),
        clips_(sounds.empty() && IsThere(folder_ + "clips") ? folder_ + "clips/" : ""),
        bad_records_(bad_records),
        all_(all) {}

  Status Take(int64_t line, Transcript transcript) {
    const Status status = Check(transcript);
    if (!status.ok()) return Refuse(line, status);
    if (all_.size() == kMostTranscripts)
      return Bad(fmt::format("{}: has more than {} lines", path_, kMostTranscripts));
    transcript.origin = Origin(line);
    transcript.sound = Find(transcript.name);
    all_.push_back(std::move(transcript));
    return Status();
  }

  Status Refuse(int64_t line, const Status& why) {
    if (bad_records_ == nullptr || !bad_records_->skips() || !IsBadRecord(why))
      return Status(why.code(), Origin(line) + ": " + why.message());
    return bad_records_->Add(Origin(line), why.message());
  }

 private:
  std::string Origin(int64_t line) const { return fmt::format("{}:{}", path_, line); }

  static Status Check(const Transcript& transcript) {
    if (transcript.name.empty()) return Bad("names no sound");
    if (transcript.name.find('\0') != std::string::npos ||
        transcript.name.size() > kMostSoundPathBytes)
      return Bad("the path of its sound is none");
    if (Trimmed(transcript.text).empty()) return Bad("has no text");
    if (transcript.text.size() <= kMostTranscriptBytes) return Status();
    return Bad(fmt::format("has a text of {} bytes, at most {} are taken", transcript.text.size(),
                           kMostTranscriptBytes));
  }

  std::string Find(const std::string& name) const {
    if (name.starts_with('/')) return name;
    std::string path = folder_ + name;
    if (clips_.empty() || IsThere(path)) return path;
    const std::string clip = clips_ + name;
    return IsThere(clip) ? clip : path;
  }

  const std::string path_, folder_, clips_;
  const BadRecordsPtr bad_records_;
  std::vector<Transcript>& all_;
};

// ---- JSON lines

const JsonValue* FirstOf(const Names& names, const std::vector<JsonValue>& values) {
  for (const std::string& name : names) {
    for (const JsonValue& value : values) {
      if (value.path == name) return &value;
    }
  }
  return nullptr;
}

Result<std::string> TextOf(const Names& names, const std::vector<JsonValue>& values) {
  const JsonValue* found = FirstOf(names, values);
  if (found == nullptr) return Bad(fmt::format("has none of {}", fmt::join(names, ", ")));
  if (found->kind != JsonKind::kText)
    return Bad(fmt::format("'{}' is {}, no text", found->path, found->text));
  return found->text;
}

constexpr double kMostSeconds = 1e9;

Status TakeTimes(const std::vector<JsonValue>& values, Transcript& transcript) {
  for (const JsonValue& value : values) {
    if (value.path != "duration" && value.path != "offset") continue;
    if (value.text == "null") continue;
    const auto number = ParseNumber(value.text);
    if (!number || !(*number >= 0 && *number <= kMostSeconds))
      return Bad(fmt::format("'{}' is {}; it must be seconds", value.path, value.text));
    if (value.path == "duration") transcript.seconds = *number;
    if (value.path == "offset") transcript.offset = *number;
  }
  return Status();
}

Status ReadJson(const std::string& path, const TranscriptNames& names, Collector& collector) {
  const Names sounds = SoundNames(names), texts = TextNames(names);
  const auto wants = [&](const std::string& key) {
    return key == "duration" || key == "offset" || Holds(sounds, key) || Holds(texts, key);
  };
  const auto parse = [&](const TextRecord& line) -> Result<Transcript> {
    RIDGE_ASSIGN_OR_RETURN(const auto values, ParseJsonLine(line.text, line.offset, wants));
    Transcript transcript;
    RIDGE_ASSIGN_OR_RETURN(transcript.name, TextOf(sounds, values));
    RIDGE_ASSIGN_OR_RETURN(transcript.text, TextOf(texts, values));
    RIDGE_RETURN_IF_ERROR(TakeTimes(values, transcript));
    return transcript;
  };
  return ForEachRecord(path, "line", [&](const TextRecord& line) {
    auto transcript = parse(line);
    if (!transcript.ok()) return collector.Refuse(line.line, transcript.status());
    return collector.Take(line.line, std::move(*transcript));
  });
}

// ---- tables

// Where sound and text stand in a row.
struct TableColumns {
  size_t count = 0, sound = 0, text = 0;
};

Result<size_t> FindColumn(const std::string& path, const Names& names, const Names& header) {
  for (const std::string& name : names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found != header.end()) return static_cast<size_t>(found - header.begin());
  }
  constexpr size_t kShown = 12;
  const Names shown(header.begin(), header.begin() + std::min(kShown, header.size()));
  return Bad(fmt::format("{}:1: has no column {}; it has {}", path, fmt::join(names, ", "),
                         fmt::join(shown, ", ")));
}

Result<TableColumns> FindColumns(const std::string& path, const TranscriptNames& names,
                                 const Names& header) {
  TableColumns columns;
  columns.count = header.size();
  RIDGE_ASSIGN_OR_RETURN(columns.sound, FindColumn(path, SoundNames(names), header));
  RIDGE_ASSIGN_OR_RETURN(columns.text, FindColumn(path, TextNames(names), header));
  return columns;
}

Status TakeRow(const TableColumns& columns, const Names& cells, int64_t line,
               Collector& collector) {
  if (cells.size() > columns.count || cells.size() <= std::max(columns.sound, columns.text)) {
    return collector.Refuse(
        line, Bad(fmt::format("has {} cells, the first line has {}", cells.size(), columns.count)));
  }
  Transcript transcript;
  transcript.name = cells[columns.sound];
  transcript.text = cells[columns.text];
  return collector.Take(line, std::move(transcript));
}

Status ReadCsv(const std::string& path, const TranscriptNames& names, Collector& collector) {
  RIDGE_ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path));
  Names cells;
  RIDGE_ASSIGN_OR_RETURN(bool more, reader.Next(cells));
  if (!more) return Bad(path + ": is empty");
  RIDGE_ASSIGN_OR_RETURN(const TableColumns columns, FindColumns(path, names, cells));
  for (;;) {
    RIDGE_ASSIGN_OR_RETURN(more, reader.Next(cells));
    if (!more) return Status();
    RIDGE_RETURN_IF_ERROR(TakeRow(columns, cells, reader.line(), collector));
  }
}

Names CutAtTabs(std::string_view line) {
  Names cells;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    cells.emplace_back(Trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

Status ReadTsv(const std::string& path, const TranscriptNames& names, Collector& collector) {
  TableColumns columns;
  RIDGE_RETURN_IF_ERROR(ForEachRecord(path, "line", [&](const TextRecord& line) -> Status {
    const Names cells = CutAtTabs(line.text);
    if (columns.count > 0) return TakeRow(columns, cells, line.line, collector);
    RIDGE_ASSIGN_OR_RETURN(columns, FindColumns(path, names, cells));
    return Status();
  }));
  return columns.count > 0 ? Status() : Bad(path + ": is empty");
}

// ---- LibriSpeech

Status ReadTrans(const std::string& path, const std::string& sounds, Collector& collector) {
  const std::string folder = sounds.empty() ? FolderOf(path) : sounds + "/";
  return ForEachRecord(path, "line", [&](const TextRecord& line) {
    const size_t blank = std::min(line.text.find_first_of(" \t"), line.text.size());
    Transcript transcript;
    transcript.name = std::string(line.text.substr(0, blank));
    transcript.text = std::string(Trimmed(line.text.substr(blank)));
    const bool is_wav =
        !IsThere(folder + transcript.name + ".flac") && IsThere(folder + transcript.name + ".wav");
    transcript.name += is_wav ? ".wav" : ".flac";
    return collector.Take(line.line, std::move(transcript));
  });
}

bool IsTrans(const std::string& path) { return path.ends_with(".trans.txt"); }

Result<Names> FindTrans(const std::string& folder) {
  static const FileKind kind = {"transcript", "1.trans.txt", {".txt"}};
  RIDGE_ASSIGN_OR_RETURN(Names paths, FindFiles(kind, folder));
  std::erase_if(paths, [](const std::string& path) { return !IsTrans(path); });
  if (paths.empty()) return Bad(folder + ": holds no *.trans.txt");
  return paths;
}

Status ReadForm(const std::string& path, const std::string& sounds, const TranscriptNames& names,
                Collector collector) {
  if (IsTrans(path)) return ReadTrans(path, sounds, collector);
  if (path.ends_with(".csv") || path.ends_with(".csv.gz")) return ReadCsv(path, names, collector);
  if (path.ends_with(".tsv") || path.ends_with(".tsv.gz")) return ReadTsv(path, names, collector);
  return ReadJson(path, names, collector);
}

}  // namespace

Result<std::vector<Transcript>> ReadTranscripts(const std::string& path, const std::string& sounds,
                                                const TranscriptNames& names,
                                                const BadRecordsPtr& bad_records) {
  std::error_code ignored;
  Names files = {path};
  if (fs::is_directory(path, ignored)) {
    RIDGE_ASSIGN_OR_RETURN(files, FindTrans(path));
  }
  std::vector<Transcript> all;
  for (const std::string& file : files) {
    RIDGE_RETURN_IF_ERROR(ReadForm(file, sounds, names, Collector(file, sounds, bad_records, all)));
  }
  if (all.empty()) return Bad(path + ": has no transcript");
  return all;
}

}  // namespace ridge
