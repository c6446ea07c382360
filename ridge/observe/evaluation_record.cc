#include "ridge/observe/evaluation_record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ridge/graph/base64.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json Optional(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

double NumberAt(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? NAN : value.get<double>();
}

std::optional<double> OptionalAt(const Json& json, const char* key) {
  if (!json.contains(key) || json.at(key).is_null()) return std::nullopt;
  return json.at(key).get<double>();
}

int64_t IntegerAt(const Json& json, const char* key) {
  return json.at(key).get_ref<const int64_t&>();
}

Json BoxClassJson(const ClassMetrics& c) {
  return {{"name", c.name},
          {"support", c.support},
          {"ap50", Optional(c.ap50)},
          {"ap50_95", Optional(c.ap50_95)}};
}

Json ClassJson(const ClassMetrics& c, bool pixels) {
  Json json = {{"name", c.name},
               {"support", c.support},
               {"said", c.said},
               {"hits", c.hits},
               {"precision", Optional(c.precision)},
               {"recall", Optional(c.recall)},
               {"f1", Optional(c.f1)}};
  if (pixels) json["iou"] = Optional(c.iou);
  return json;
}

ClassMetrics ReadBoxClass(const Json& json) {
  ClassMetrics c;
  c.name = json.at("name").get<std::string>();
  c.support = IntegerAt(json, "support");
  c.ap50 = OptionalAt(json, "ap50");
  c.ap50_95 = OptionalAt(json, "ap50_95");
  return c;
}

ClassMetrics ReadClass(const Json& json) {
  return {json.at("name").get<std::string>(),
          IntegerAt(json, "support"),
          IntegerAt(json, "said"),
          IntegerAt(json, "hits"),
          OptionalAt(json, "precision"),
          OptionalAt(json, "recall"),
          OptionalAt(json, "f1"),
          OptionalAt(json, "iou")};
}

Json PictureJson(const std::optional<Thumbnail>& picture) {
  if (!picture) return {};
  return {{"width", picture->width},
          {"height", picture->height},
          {"channels", picture->channels},
          {"pixels", EncodeBase64(picture->pixels)}};
}

// Nothing when the sizes and the pixels do not agree.
std::optional<Thumbnail> ReadPicture(const Json& json) {
  if (!json.contains("picture") || json.at("picture").is_null()) return std::nullopt;
  const Json& from = json.at("picture");
  Thumbnail picture{
      IntegerAt(from, "width"), IntegerAt(from, "height"), IntegerAt(from, "channels"), {}};
  const auto side = [](int64_t n) { return n >= 1 && n <= Thumbnail::kMostSide; };
  auto pixels = DecodeBase64(from.at("pixels").get_ref<const std::string&>());
  const bool fits =
      side(picture.width) && side(picture.height) &&
      (picture.channels == 1 || picture.channels == 3) && pixels &&
      static_cast<int64_t>(pixels->size()) == picture.width * picture.height * picture.channels;
  if (!fits) return std::nullopt;
  picture.pixels = std::move(*pixels);
  return picture;
}

Json WrongJson(const WrongRecord& wrong) {
  return {{"index", wrong.index},
          {"origin", wrong.origin},
          {"label", wrong.label},
          {"said", wrong.said},
          {"probability", Number(wrong.probability)},
          {"picture", PictureJson(wrong.picture)}};
}

WrongRecord ReadWrong(const Json& json) {
  WrongRecord wrong;
  wrong.index = IntegerAt(json, "index");
  wrong.origin = json.at("origin").get<std::string>();
  wrong.label = json.at("label").get<std::string>();
  wrong.said = json.at("said").get<std::string>();
  wrong.probability = NumberAt(json, "probability");
  wrong.picture = ReadPicture(json);
  return wrong;
}

Json ConfusionJson(const EvaluationRecord& record) {
  if (record.confusion.empty()) return {};
  const size_t n = record.classes.size();
  Json rows = Json::array();
  for (size_t row = 0; row < n; ++row) {
    const auto begin = record.confusion.begin() + static_cast<int64_t>(row * n);
    rows.push_back(std::vector<int64_t>(begin, begin + static_cast<int64_t>(n)));
  }
  return rows;
}

// Throws std::out_of_range when it is no square of the classes.
std::vector<int64_t> ReadConfusion(const Json& json, size_t classes) {
  std::vector<int64_t> cells;
  if (!json.contains("confusion") || json.at("confusion").is_null()) return cells;
  for (const Json& row : json.at("confusion")) {
    for (const Json& cell : row) cells.push_back(cell.get_ref<const int64_t&>());
  }
  if (cells.size() != classes * classes) throw std::out_of_range("confusion is no square");
  return cells;
}

EvaluationRecord ReadRecord(const Json& json) {
  EvaluationRecord record;
  record.data = json.at("data").get<std::string>();
  record.step = IntegerAt(json, "step");
  record.samples = IntegerAt(json, "samples");
  record.loss = NumberAt(json, "loss");
  record.accuracy = OptionalAt(json, "accuracy");
  for (const auto& [name, value] : json.at("metrics").items())
    record.metrics.emplace_back(name, value.is_null() ? NAN : value.get<double>());
  record.pixels = json.value("pixels", false);
  record.boxes = json.value("boxes", false);
  for (const Json& c : json.at("classes"))
    record.classes.push_back(record.boxes ? ReadBoxClass(c) : ReadClass(c));
  record.confusion = ReadConfusion(json, record.classes.size());
  for (const Json& wrong : json.at("wrong")) record.wrong.push_back(ReadWrong(wrong));
  return record;
}

// Quoted where a comma, a quote or the end of a line asks for it (RFC 4180).
std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string RecordToJson(const EvaluationRecord& record) {
  Json metrics = Json::object(), classes = Json::array(), wrong = Json::array();
  for (const auto& [name, value] : record.metrics) metrics[name] = Number(value);
  for (const ClassMetrics& c : record.classes)
    classes.push_back(record.boxes ? BoxClassJson(c) : ClassJson(c, record.pixels));
  for (const WrongRecord& w : record.wrong) wrong.push_back(WrongJson(w));
  Json json = {{"data", record.data},
               {"step", record.step},
               {"samples", record.samples},
               {"loss", Number(record.loss)},
               {"accuracy", Optional(record.accuracy)},
               {"metrics", std::move(metrics)},
               {"classes", std::move(classes)},
               {"confusion", ConfusionJson(record)},
               {"wrong", std::move(wrong)}};
  if (record.pixels) json["pixels"] = true;
  if (record.boxes) json["boxes"] = true;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<EvaluationRecord> RecordFromJson(const std::string& text, const std::string& file) {
  try {
    return ReadRecord(Json::parse(text));
  } catch (const std::exception& error) {  // of JSON, or of a shape
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: not the evaluation of a run: {}", file, error.what()));
  }
}

std::string ConfusionToCsv(const EvaluationRecord& record) {
  std::string text = "label";
  for (const ClassMetrics& c : record.classes) text += "," + CsvCell(c.name);
  text += "\n";
  const size_t n = record.classes.size();
  for (size_t row = 0; row < n; ++row) {
    text += CsvCell(record.classes[row].name);
    for (size_t said = 0; said < n; ++said)
      text += fmt::format(",{}", record.confusion[row * n + said]);
    text += "\n";
  }
  return text;
}

}  // namespace ridge
