#include "ridge/plan/choose/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "ridge/core/split.h"
#include "ridge/core/units.h"
#include "ridge/graph/suggest.h"

namespace ridge {
namespace {

constexpr int64_t kMostSide = 16384, kMostCount = 1 << 20;

// The number that `text` begins with, and what is behind it.
std::optional<double> NumberBefore(std::string_view text, std::string_view& rest) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0 && value < 1e12)) return std::nullopt;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

struct Unit {
  std::string_view name;
  double times;
};

// A number above 0 with one of the units.
std::optional<double> Measured(std::string_view text, std::initializer_list<Unit> units) {
  std::string_view rest;
  const std::optional<double> number = NumberBefore(text, rest);
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (rest == unit.name) return *number * unit.times;
  }
  return std::nullopt;
}

Result<double> OrRefuse(const std::optional<double>& value, const std::string& name,
                        const std::string& text, const char* should) {
  if (value) return *value;
  return InvalidArgument(fmt::format("{} is '{}'; it must be {}", name, text, should));
}

std::optional<int64_t> Side(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 1 || value > kMostSide) return std::nullopt;
  return value;
}

// "1920x1080@30"
std::optional<ServingStream> SizeAndRate(std::string_view text) {
  const std::vector<std::string_view> parts = SplitAt(text, '@');
  if (parts.size() != 2) return std::nullopt;
  const std::vector<std::string_view> sides = SplitAt(parts[0], 'x');
  if (sides.size() != 2) return std::nullopt;
  const std::optional<int64_t> width = Side(sides[0]), height = Side(sides[1]);
  const std::optional<double> fps = Measured(parts[1], {{"", 1}});
  if (!width || !height || !fps) return std::nullopt;
  ServingStream stream;
  stream.fps = *fps;
  stream.pictures = {"", *width, *height};
  return stream;
}

bool IsVideoCodec(std::string_view codec) {
  const std::vector<std::string>& known = KnownCodecs();
  return codec != "jpeg" && std::find(known.begin(), known.end(), codec) != known.end();
}

// ---- files

// One table of a file: its keys are taken by what they stand for.
class TableReader {
 public:
  TableReader(const std::string& path, const toml::table& table) : path_(path), table_(table) {}

  Status Bad(const toml::node& node, const std::string& what) const {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}:{}: {}", path_, node.source().begin.line, what));
  }

  using Take = std::function<Status(const toml::node&, const std::string& key)>;

  // Every key of the table, by its line; one that `takers` lacks is refused.
  Status TakeAll(const std::map<std::string, Take>& takers) const {
    std::vector<std::pair<std::string, const toml::node*>> entries;
    for (const auto& [key, value] : table_) entries.emplace_back(key.str(), &value);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.second->source().begin.line < b.second->source().begin.line;
    });
    for (const auto& [key, value] : entries) {
      const auto taker = takers.find(key);
      if (taker == takers.end()) return Unknown(*value, key, takers);
      RIDGE_RETURN_IF_ERROR(taker->second(*value, key));
    }
    return Status();
  }

  Take Text(std::string& to) const {
    return [this, &to](const toml::node& node, const std::string& key) {
      if (!node.is_string()) return Bad(node, key + " must be a text, such as \"...\"");
      to = **node.as_string();
      return Status();
    };
  }

  Take Count(int64_t& to) const {
    return [this, &to](const toml::node& node, const std::string& key) {
      const std::optional<int64_t> value = node.value<int64_t>();
      if (!node.is_integer() || !value || *value < 1 || *value > kMostCount)
        return Bad(node, fmt::format("{} must be a whole number from 1 to {}", key, kMostCount));
      to = *value;
      return Status();
    };
  }

  // What `parse` makes of a text.
  template <typename To, typename Value>
  Take Parsed(To& to, Result<Value> (*parse)(const std::string&, const std::string&)) const {
    return [this, &to, parse](const toml::node& node, const std::string& key) {
      if (!node.is_string()) return Bad(node, key + " must be a text, such as \"...\"");
      Result<Value> value = parse(key, **node.as_string());
      if (!value.ok()) return Bad(node, value.status().message());
      to = *value;
      return Status();
    };
  }

 private:
  Status Unknown(const toml::node& node, const std::string& key,
                 const std::map<std::string, Take>& takers) const {
    std::vector<std::string> keys;
    for (const auto& [known, take] : takers) keys.push_back(known);
    return Bad(node, fmt::format("no key '{}'{} hint: the keys are {}", key, DidYouMean(key, keys),
                                 fmt::join(keys, ", ")));
  }

  const std::string& path_;
  const toml::table& table_;
};

Result<int64_t> ParseMemory(const std::string& name, const std::string& text) {
  Result<int64_t> bytes = ParseSize(text);
  if (bytes.ok()) return bytes;
  return InvalidArgument(fmt::format("{} is '{}'; it must be a size, such as 8GiB", name, text));
}

Result<ServingStream> ReadStream(const TableReader& reader) {
  ServingStream stream;
  std::string name;
  int64_t count = 1;
  RIDGE_RETURN_IF_ERROR(reader.TakeAll({{"name", reader.Text(name)},
                                        {"count", reader.Count(count)},
                                        {"input", reader.Parsed(stream, ParseStream)}}));
  stream.name = name;
  stream.count = count;
  return stream;
}

struct ReadModelTable {
  ServedModel model;
  std::string stream;  // its name
};

Result<ReadModelTable> ReadModel(const TableReader& reader) {
  ReadModelTable read;
  ServedModel& model = read.model;
  TokenCounts tokens = {};
  int64_t sequences = 0;
  tokens.output = 0;
  RIDGE_RETURN_IF_ERROR(reader.TakeAll({{"model", reader.Text(model.model)},
                                        {"precision", reader.Text(model.precision)},
                                        {"batch", reader.Count(model.batch)},
                                        {"copies", reader.Count(model.copies)},
                                        {"stream", reader.Text(read.stream)},
                                        {"rate", reader.Parsed(model.rate_s, ParseRate)},
                                        {"prompt", reader.Count(tokens.prompt)},
                                        {"output", reader.Count(tokens.output)},
                                        {"sequences", reader.Count(sequences)}}));
  if (tokens.prompt > 0 || tokens.output > 0 || sequences > 0) model.tokens = tokens;
  if (sequences > 0) model.batch = sequences;
  return read;
}

// The stream of this name, or the only one where a model names none and has no rate.
Result<int> StreamOf(const ServingLoad& load, const ReadModelTable& read) {
  for (size_t i = 0; i < load.streams.size(); ++i) {
    if (!read.stream.empty() && load.streams[i].name == read.stream) return static_cast<int>(i);
  }
  if (!read.stream.empty())
    return InvalidArgument(fmt::format("no stream has the name '{}'", read.stream));
  return load.streams.size() == 1 && !read.model.tokens ? 0 : -1;
}

template <typename Read>
Status ForEachTable(const std::string& path, const toml::table& file, std::string_view key,
                    Read read) {
  const toml::node* node = file.get(key);
  if (node == nullptr) return Status();
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}:{}: {} must be tables; begin each with a line [[{}]]", path,
                              node->source().begin.line, key, key));
  }
  for (const toml::node& table : *array)
    RIDGE_RETURN_IF_ERROR(read(TableReader(path, *table.as_table()), table));
  return Status();
}

Status ReadModels(const std::string& path, const toml::table& file, ServingLoad& load) {
  return ForEachTable(path, file, "model", [&](const TableReader& reader, const toml::node& at) {
    RIDGE_ASSIGN_OR_RETURN(ReadModelTable read, ReadModel(reader));
    if (read.model.model.empty()) return reader.Bad(at, "a [[model]] has no `model`");
    const Result<int> stream = StreamOf(load, read);
    if (!stream.ok()) return reader.Bad(at, stream.status().message());
    read.model.stream = *stream;
    load.models.push_back(std::move(read.model));
    return Status();
  });
}

}  // namespace

Result<double> ParseSeconds(const std::string& name, const std::string& text) {
  return OrRefuse(Measured(text, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}}), name, text,
                  "a time above 0, such as 80ms or 1.5s");
}

Result<double> ParseRate(const std::string& name, const std::string& text) {
  return OrRefuse(Measured(text, {{"/s", 1}, {"/min", 1.0 / 60}, {"/h", 1.0 / 3600}}), name, text,
                  "a number above 0 a time, such as 120/s, 90/min or 2/h");
}

Result<double> ParseWatts(const std::string& name, const std::string& text) {
  return OrRefuse(Measured(text, {{"W", 1}, {"", 1}}), name, text,
                  "a number above 0 with W, such as 70W");
}

Result<ServingStream> ParseStream(const std::string& name, const std::string& text) {
  const std::vector<std::string_view> parts = SplitAt(text, ':');
  const bool is_video = parts[0] == "video" && (parts.size() == 2 || parts.size() == 3);
  const bool is_jpeg = parts[0] == "jpeg" && parts.size() == 2;
  std::optional<ServingStream> stream;
  if (is_video || is_jpeg) stream = SizeAndRate(parts[1]);
  const std::string codec(is_jpeg ? "jpeg" : parts.size() == 3 ? parts[2] : "h264");
  if (stream && (is_jpeg || IsVideoCodec(codec))) {
    stream->pictures.codec = codec;
    return *stream;
  }
  return InvalidArgument(fmt::format(
      "{} is '{}'; it must be video:WIDTHxHEIGHT@FPS, video:WIDTHxHEIGHT@FPS:CODEC with "
      "h264, hevc, vp9 or av1, or jpeg:WIDTHxHEIGHT@RATE, such as video:1920x1080@30",
      name, text));
}

Status CompleteLoad(ServingLoad& load) {
  for (ServedModel& model : load.models) {
    if (model.stream >= 0 && !model.rate_s)
      model.rate_s = load.streams[static_cast<size_t>(model.stream)].fps;
  }
  for (const ServedModel& model : load.models) {
    if (model.rate_s.has_value() == load.has_rates()) continue;
    const std::string& lacks = model.rate_s ? load.models[0].model : model.model;
    return InvalidArgument(
        fmt::format("{} has no rate, and another model has one. hint: rate = \"2/s\"", lacks));
  }
  return Status();
}

Result<ServingLoad> ParseScenario(std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidData, path + what);
  };
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return bad(fmt::format(":{}: {}", error.source().begin.line, error.description()));
  }
  ServingLoad load;
  const TableReader reader(path, parsed.table());
  const TableReader::Take later = [](const toml::node&, const std::string&) { return Status(); };
  RIDGE_RETURN_IF_ERROR(
      reader.TakeAll({{"name", reader.Text(load.name)},
                      {"latency", reader.Parsed(load.limits.latency_s, ParseSeconds)},
                      {"power", reader.Parsed(load.limits.power_w, ParseWatts)},
                      {"memory", reader.Parsed(load.limits.memory_bytes, ParseMemory)},
                      {"stream", later},
                      {"model", later}}));
  RIDGE_RETURN_IF_ERROR(ForEachTable(
      path, parsed.table(), "stream", [&](const TableReader& table, const toml::node& at) {
        RIDGE_ASSIGN_OR_RETURN(ServingStream stream, ReadStream(table));
        if (stream.fps <= 0) return table.Bad(at, "a [[stream]] has no `input`");
        load.streams.push_back(std::move(stream));
        return Status();
      }));
  RIDGE_RETURN_IF_ERROR(ReadModels(path, parsed.table(), load));
  if (load.models.empty()) return bad(": has no model. hint: begin with a line [[model]]");
  if (const Status status = CompleteLoad(load); !status.ok()) return bad(": " + status.message());
  return load;
}

}  // namespace ridge
