#include "ridge/train/store/preprocessing_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"

namespace ridge {
namespace {

using PreprocessingJson = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr int64_t kMostPreprocessingBytes = int64_t{1} << 30;
constexpr std::array<const char*, 3> kColumnKinds = {"number", "boolean", "category"};
constexpr std::array<const char*, 3> kLabelKinds = {"class", "integer", "number"};

template <typename Kind>
Kind KindOf(const std::array<const char*, 3>& names, const std::string& text) {
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

constexpr const char* kFits[] = {"crop", "stretch"};
constexpr const char* kFilters[] = {"bilinear", "nearest"};
constexpr int64_t kMostImageSide = 1 << 14;

PreprocessingJson ImageJson(const PictureTarget& image) {
  return {{"height", image.size.height},
          {"width", image.size.width},
          {"channels", image.channels},
          {"fit", kFits[static_cast<size_t>(image.fit)]},
          {"resize", kFilters[static_cast<size_t>(image.filter)]}};
}

int64_t ExtentOf(const PreprocessingJson& json, const char* key, int64_t most) {
  const auto extent = json.at(key).get<int64_t>();
  if (extent < 1 || extent > most)
    throw std::out_of_range(fmt::format("{} is {}; it must be 1 to {}", key, extent, most));
  return extent;
}

// Which of two words it is.
bool IsSecond(const PreprocessingJson& json, const char* key, const char* const (&words)[2]) {
  const auto word = json.at(key).get<std::string>();
  if (word != words[0] && word != words[1]) throw std::out_of_range(key + (" '" + word) + "'");
  return word == words[1];
}

PictureTarget ReadImage(const PreprocessingJson& json) {
  PictureTarget image;
  image.size = {ExtentOf(json, "height", kMostImageSide), ExtentOf(json, "width", kMostImageSide)};
  image.channels = static_cast<int>(ExtentOf(json, "channels", 3));
  if (image.channels == 2) throw std::out_of_range("channels is 2; it must be 1 or 3");
  image.fit = IsSecond(json, "fit", kFits) ? ImageFit::kStretch : ImageFit::kCrop;
  image.filter =
      IsSecond(json, "resize", kFilters) ? ResizeFilter::kNearest : ResizeFilter::kBilinear;
  return image;
}

}  // namespace

std::string PreprocessingToJson(const Preprocessing& preprocessing) {
  PreprocessingJson json = {{"version", kFormatVersion}};
  if (!preprocessing.classes.empty()) json["classes"] = preprocessing.classes;
  if (preprocessing.image) json["image"] = ImageJson(*preprocessing.image);
  if (preprocessing.table) json["table"] = TableJson(*preprocessing.table);
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
    if (json.contains("image")) preprocessing.image = ReadImage(json.at("image"));
    if (json.contains("table")) preprocessing.table = ReadTable(json.at("table"));
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
  return std::shared_ptr<const Preprocessing>(
      std::make_shared<Preprocessing>(std::move(preprocessing)));
}

}  // namespace ridge
