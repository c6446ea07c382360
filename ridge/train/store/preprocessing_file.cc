#include "ridge/train/store/preprocessing_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "ridge/data/sound/mel.h"
#include "ridge/data/spelling.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;
using PreprocessingJson = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr int64_t kMostPreprocessingBytes = int64_t{1} << 30;
constexpr std::array<const char*, 3> kColumnKinds = {"number", "boolean", "category"};
constexpr std::array<const char*, 3> kLabelKinds = {"class", "integer", "number"};

constexpr std::array<const char*, 3> kFits = {"crop", "stretch", "pad"};
constexpr std::array<const char*, 3> kPointPicks = {"even", "first", "farthest"};
constexpr std::array<const char*, 2> kPointScales = {"sphere", "none"};
constexpr std::array<const char*, 2> kMelScales = {"htk", "slaney"};
constexpr std::array<const char*, 3> kMelLevels = {"db", "log", "whisper"};
constexpr std::array<const char*, 3> kFilters = {"bilinear", "nearest", "bicubic"};

template <typename Kind, size_t kCount>
Kind KindOf(const std::array<const char*, kCount>& names, const std::string& text) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) throw std::out_of_range("kind '" + text + "'");
  return static_cast<Kind>(found - names.begin());
}

PreprocessingJson ColumnJson(const TableColumn& column) {
  PreprocessingJson json = {{"name", column.name},
                            {"kind", kColumnKinds[static_cast<size_t>(column.kind)]}};
  if (column.kind == ColumnKind::kCategory) {
    json["values"] = column.values;
  } else {
    json["mean"] = column.mean;
    json["std"] = column.std;
  }
  json["missing"] = column.missing;
  return json;
}

TableColumn ReadColumn(const PreprocessingJson& json) {
  TableColumn column;
  column.name = json.at("name").get<std::string>();
  column.kind = KindOf<ColumnKind>(kColumnKinds, json.at("kind").get<std::string>());
  column.missing = json.at("missing").get<bool>();
  if (column.kind == ColumnKind::kCategory) {
    column.mean = column.std = 0;
    column.values = json.at("values").get<std::vector<std::string>>();
    if (!std::is_sorted(column.values.begin(), column.values.end()))
      throw std::out_of_range("values of '" + column.name + "' are not sorted");
    return column;
  }
  column.mean = json.at("mean").get<double>();
  column.std = json.at("std").get<double>();
  return column;
}

PreprocessingJson TableJson(const TablePreprocessing& table) {
  PreprocessingJson json = {{"standardize", table.standardize},
                            {"columns", PreprocessingJson::array()}};
  for (const TableColumn& column : table.columns) json["columns"].push_back(ColumnJson(column));
  if (table.label) {
    json["label"] = {{"name", table.label->name},
                     {"kind", kLabelKinds[static_cast<size_t>(table.label->kind)]}};
  }
  return json;
}

TablePreprocessing ReadTable(const PreprocessingJson& json) {
  TablePreprocessing table;
  table.standardize = json.at("standardize").get<bool>();
  for (const PreprocessingJson& column : json.at("columns"))
    table.columns.push_back(ReadColumn(column));
  if (json.contains("label")) {
    const PreprocessingJson& label = json.at("label");
    table.label = {label.at("name").get<std::string>(),
                   KindOf<LabelKind>(kLabelKinds, label.at("kind").get<std::string>())};
  }
  return table;
}

PreprocessingJson PicturesJson(const PicturePreprocessing& pictures) {
  const PictureTarget& target = pictures.target;
  return {{"height", target.size.height},
          {"width", target.size.width},
          {"channels", target.channels},
          {"fit", kFits[static_cast<size_t>(target.fit)]},
          {"resize", kFilters[static_cast<size_t>(target.filter)]},
          {"mean", pictures.normalization.mean},
          {"std", pictures.normalization.std}};
}

int64_t ReadSide(const PreprocessingJson& json, const char* key) {
  const auto& value = json.at(key);
  const int64_t side = value.is_number_integer() ? value.get<int64_t>() : 0;
  if (side < 1 || side > kMostPictureSide)
    throw std::out_of_range(fmt::format("{} of pictures is {}", key, value.dump()));
  return side;
}

PixelNormalization ReadNormalization(const PreprocessingJson& json, int channels) {
  PixelNormalization result{json.at("mean").get<std::vector<double>>(),
                            json.at("std").get<std::vector<double>>()};
  const size_t count = result.mean.size();
  const bool fits = count <= 1 || count == static_cast<size_t>(channels);
  if (!fits || result.std.size() != count)
    throw std::out_of_range(fmt::format("pictures of {} channels have {} means and {} deviations",
                                        channels, count, result.std.size()));
  for (const double std : result.std) {
    if (!(std > 0)) throw std::out_of_range(fmt::format("a deviation of pictures is {}", std));
  }
  return result;
}

PicturePreprocessing ReadPictures(const PreprocessingJson& json) {
  PicturePreprocessing pictures;
  PictureTarget& target = pictures.target;
  target.size = {ReadSide(json, "height"), ReadSide(json, "width")};
  target.channels = static_cast<int>(ReadSide(json, "channels"));
  if (target.channels != 1 && target.channels != 3)
    throw std::out_of_range(fmt::format("pictures have {} channels", target.channels));
  target.fit = KindOf<ImageFit>(kFits, json.at("fit").get<std::string>());
  target.filter = KindOf<ResizeFilter>(kFilters, json.at("resize").get<std::string>());
  pictures.normalization = ReadNormalization(json, target.channels);
  if (json.size() != PicturesJson(pictures).size())
    throw std::out_of_range("pictures have a key that this program does not know");
  return pictures;
}

PreprocessingJson MasksJson(const MaskPreprocessing& masks) {
  return {{"classes", masks.classes}, {"binary", masks.binary}};
}

MaskPreprocessing ReadMasks(const PreprocessingJson& json) {
  MaskPreprocessing masks = {json.at("classes").get<int64_t>(), json.at("binary").get<bool>()};
  if (masks.classes < 1 || masks.classes > kMostMaskClasses)
    throw std::out_of_range(fmt::format("masks have {} classes", masks.classes));
  if (json.size() != MasksJson(masks).size())
    throw std::out_of_range("masks have a key that this program does not know");
  return masks;
}

PreprocessingJson ClipsJson(const VideoTarget& clips) {
  PreprocessingJson json = {{"frames", clips.frames}, {"stride", clips.stride}};
  clips.every > 0 ? json["every"] = clips.every : json["fps"] = clips.fps;
  return json;
}

VideoTarget ReadClips(const PreprocessingJson& json) {
  VideoTarget clips;
  clips.frames = json.at("frames").get<int64_t>();
  clips.stride = json.at("stride").get<int64_t>();
  clips.fps = json.value("fps", clips.fps);
  clips.every = json.value("every", clips.every);
  if (clips.frames < 1 || clips.frames > kMostClipFrames)
    throw std::out_of_range(fmt::format("clips have {} frames", clips.frames));
  if (clips.stride < 1)
    throw std::out_of_range(fmt::format("the stride of clips is {}", clips.stride));
  if (clips.every < 0) throw std::out_of_range(fmt::format("every of clips is {}", clips.every));
  if (!(clips.fps > 0)) throw std::out_of_range(fmt::format("fps of clips is {}", clips.fps));
  if (json.size() != ClipsJson(clips).size())
    throw std::out_of_range("clips have a key that this program does not know");
  return clips;
}

// The run keeps the files in a folder of its own: only their names are here.
PreprocessingJson TextJson(const TextPreprocessing& text) {
  PreprocessingJson files = PreprocessingJson::array();
  for (const std::string& path : text.files) files.push_back(fs::path(path).filename().string());
  return {{"tokenizer", text.kind}, {"files", files}};
}

TextPreprocessing ReadText(const PreprocessingJson& json) {
  TextPreprocessing text = {json.at("tokenizer").get<std::string>(),
                            json.at("files").get<std::vector<std::string>>()};
  for (const std::string& file : text.files) {
    if (file.empty() || file.find('/') != std::string::npos || file == "..")
      throw std::out_of_range(fmt::format("'{}' is no name of a tokenizer's file", file));
  }
  return text;
}

PreprocessingJson MelJson(const MelSettings& mel) {
  return {{"fft", mel.fft},
          {"window", mel.window},
          {"hop", mel.hop},
          {"mels", mel.mels},
          {"low", mel.low},
          {"high", mel.high},
          {"scale", kMelScales[static_cast<size_t>(mel.scale)]},
          {"level", kMelLevels[static_cast<size_t>(mel.level)]}};
}

MelSettings ReadMel(const PreprocessingJson& json) {
  MelSettings mel;
  mel.fft = json.at("fft").get<int64_t>();
  mel.window = json.at("window").get<int64_t>();
  mel.hop = json.at("hop").get<int64_t>();
  mel.mels = json.at("mels").get<int64_t>();
  mel.low = json.at("low").get<double>();
  mel.high = json.at("high").get<double>();
  mel.scale = KindOf<MelScale>(kMelScales, json.at("scale").get<std::string>());
  mel.level = KindOf<MelLevel>(kMelLevels, json.at("level").get<std::string>());
  return mel;
}

PreprocessingJson SoundsJson(const SoundTarget& sounds) {
  PreprocessingJson json = {{"rate", sounds.rate},
                            {"samples", sounds.samples},
                            {"channel", sounds.channel},
                            {"mean", sounds.mean},
                            {"std", sounds.std}};
  if (sounds.mel) json["mel"] = MelJson(*sounds.mel);
  return json;
}

SoundTarget ReadSounds(const PreprocessingJson& json) {
  SoundTarget sounds;
  sounds.rate = json.at("rate").get<int64_t>();
  sounds.samples = json.at("samples").get<int64_t>();
  sounds.channel = json.at("channel").get<int>();
  sounds.mean = json.at("mean").get<double>();
  sounds.std = json.at("std").get<double>();
  if (json.contains("mel")) sounds.mel = ReadMel(json.at("mel"));
  if (sounds.rate < 1 || sounds.rate > kMostSoundRate)
    throw std::out_of_range(fmt::format("the rate of sounds is {}", sounds.rate));
  if (sounds.samples < 1 || sounds.samples > kMostSoundSamples)
    throw std::out_of_range(fmt::format("sounds have {} samples", sounds.samples));
  if (!(sounds.std > 0))
    throw std::out_of_range(fmt::format("a deviation of sounds is {}", sounds.std));
  if (sounds.channel < kMeanOfChannels || sounds.channel >= kMostSoundChannels)
    throw std::out_of_range(fmt::format("the channel of sounds is {}", sounds.channel));
  if (sounds.mel) {
    const Status mel = CheckMel(*sounds.mel, sounds.rate, sounds.samples);
    if (!mel.ok()) throw std::out_of_range("sounds: " + mel.message());
  }
  const PreprocessingJson known = SoundsJson(sounds);
  if (json.size() != known.size() ||
      (sounds.mel && json.at("mel").size() != known.at("mel").size()))
    throw std::out_of_range("sounds have a key that this program does not know");
  return sounds;
}

PreprocessingJson SpellingJson(const SpellingPreprocessing& spelling) {
  return {{"lower", spelling.lower}, {"letters", spelling.letters}};
}

SpellingPreprocessing ReadSpelling(const PreprocessingJson& json) {
  SpellingPreprocessing spelling = {json.at("lower").get<bool>(),
                                    json.at("letters").get<std::vector<std::string>>()};
  if (static_cast<int64_t>(spelling.letters.size()) > kMostLetters)
    throw std::out_of_range(fmt::format("a spelling has {} letters", spelling.letters.size()));
  for (const std::string& letter : spelling.letters) {
    if (CountLetters(letter) != 1)
      throw std::out_of_range(fmt::format("'{}' is not one letter", letter));
  }
  if (json.size() != SpellingJson(spelling).size())
    throw std::out_of_range("a spelling has a key that this program does not know");
  return spelling;
}

PreprocessingJson PointsJson(const PointTarget& points) {
  return {{"count", points.count},
          {"pick", kPointPicks[static_cast<size_t>(points.pick)]},
          {"normalize", kPointScales[static_cast<size_t>(points.scale)]}};
}

PointTarget ReadPoints(const PreprocessingJson& json) {
  PointTarget points;
  points.count = json.at("count").get<int64_t>();
  points.pick = KindOf<PointPick>(kPointPicks, json.at("pick").get<std::string>());
  points.scale = KindOf<PointScale>(kPointScales, json.at("normalize").get<std::string>());
  if (points.count < 1 || points.count > kMostPicked)
    throw std::out_of_range(fmt::format("clouds have {} points", points.count));
  if (json.size() != PointsJson(points).size())
    throw std::out_of_range("points have a key that this program does not know");
  return points;
}

}  // namespace

std::string PreprocessingToJson(const Preprocessing& preprocessing) {
  PreprocessingJson json = {{"version", kFormatVersion}};
  if (!preprocessing.classes.empty()) json["classes"] = preprocessing.classes;
  if (preprocessing.table) json["table"] = TableJson(*preprocessing.table);
  if (preprocessing.pictures) json["pictures"] = PicturesJson(*preprocessing.pictures);
  if (preprocessing.masks) json["masks"] = MasksJson(*preprocessing.masks);
  if (preprocessing.clips) json["clips"] = ClipsJson(*preprocessing.clips);
  if (preprocessing.text) json["text"] = TextJson(*preprocessing.text);
  if (preprocessing.sounds) json["sounds"] = SoundsJson(*preprocessing.sounds);
  if (preprocessing.spelling) json["spelling"] = SpellingJson(*preprocessing.spelling);
  if (preprocessing.points) json["points"] = PointsJson(*preprocessing.points);
  return json.dump(1, ' ', false, PreprocessingJson::error_handler_t::replace) + "\n";
}

Result<Preprocessing> PreprocessingFromJson(const std::string& text, const std::string& file) {
  try {
    const PreprocessingJson json = PreprocessingJson::parse(text);
    if (const int version = json.at("version").get<int>(); version != kFormatVersion) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: is of format version {}; this program reads {}", file, version,
                                kFormatVersion));
    }
    Preprocessing preprocessing;
    if (json.contains("classes"))
      preprocessing.classes = json.at("classes").get<std::vector<std::string>>();
    if (json.contains("table")) preprocessing.table = ReadTable(json.at("table"));
    if (json.contains("pictures")) preprocessing.pictures = ReadPictures(json.at("pictures"));
    if (json.contains("masks")) preprocessing.masks = ReadMasks(json.at("masks"));
    if (json.contains("clips")) preprocessing.clips = ReadClips(json.at("clips"));
    if (json.contains("text")) preprocessing.text = ReadText(json.at("text"));
    if (json.contains("sounds")) preprocessing.sounds = ReadSounds(json.at("sounds"));
    if (json.contains("spelling")) preprocessing.spelling = ReadSpelling(json.at("spelling"));
    if (json.contains("points")) preprocessing.points = ReadPoints(json.at("points"));
    return preprocessing;
  } catch (const std::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: cannot be read: {}", file, error.what()));
  }
}

Result<std::shared_ptr<const Preprocessing>> PreprocessingOf(const Run& run) {
  const std::string file = run.File(kPreprocessingFile);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::shared_ptr<const Preprocessing>();
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostPreprocessingBytes));
  RIDGE_ASSIGN_OR_RETURN(Preprocessing preprocessing, PreprocessingFromJson(text, file));
  if (preprocessing.text) {
    for (std::string& path : preprocessing.text->files)
      path = run.File(std::string(kTokenizerFolder) + "/" + path);
  }
  return std::shared_ptr<const Preprocessing>(
      std::make_shared<Preprocessing>(std::move(preprocessing)));
}

Status WritePreprocessing(const std::string& folder, const Preprocessing& preprocessing) {
  if (preprocessing.text && !preprocessing.text->files.empty()) {
    const std::string tokenizer = folder + "/" + kTokenizerFolder;
    std::error_code error;
    fs::create_directories(tokenizer, error);
    for (const std::string& path : preprocessing.text->files) {
      const std::string copy = tokenizer + "/" + fs::path(path).filename().native();
      if (fs::equivalent(path, copy, error)) continue;
      RIDGE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
      RIDGE_RETURN_IF_ERROR(WriteFileAtomically(copy, bytes));
    }
  }
  return WriteFileAtomically(folder + "/" + kPreprocessingFile, PreprocessingToJson(preprocessing));
}

}  // namespace ridge
