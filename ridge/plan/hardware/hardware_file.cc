// Catalog files: TOML by toml++, which tells line and column of each value.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "ridge/core/files.h"
#include "ridge/graph/suggest.h"
#include "ridge/plan/hardware/device_catalog.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge {
namespace {

constexpr const char* kLike = "like";
constexpr const char* kBuiltIn = "devices.toml";

std::string WithHint(const std::string& what, const std::string& hint) {
  return what + (what.ends_with('?') ? " hint: " : ". hint: ") + hint;
}

// Where a value stands, and what is wrong with it.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Status Bad(const toml::node& node, const std::string& what) const {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}:{}: {}", path_, node.source().begin.line, what));
  }

  // Sets the key's member of the device.
  Status Take(const std::string& key, const toml::node& value, Hardware& hardware) const;

 private:
  Status WrongType(const std::string& key, const toml::node& value, const char* should) const;
  const std::string& path_;
};

std::vector<std::string> AllKeys() {
  std::vector<std::string> keys = {kLike};
  for (const HardwareText& text : HardwareTexts()) keys.emplace_back(text.key);
  for (const HardwareNumber& number : HardwareNumbers()) keys.emplace_back(number.key);
  for (const HardwareFlag& flag : HardwareFlags()) keys.emplace_back(flag.key);
  return keys;
}

template <typename Row>
const Row* FindKey(std::span<const Row> rows, const std::string& key) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return key == row.key; });
  return found == rows.end() ? nullptr : &*found;
}

const char* TypeName(const toml::node& node) {
  if (node.is_string()) return "a text";
  if (node.is_number()) return "a number";
  if (node.is_boolean()) return "true or false";
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  return "a date or time";
}

Status Reader::WrongType(const std::string& key, const toml::node& value,
                         const char* should) const {
  return Bad(value, fmt::format("{} is {}; it must be {}", key, TypeName(value), should));
}

Status Reader::Take(const std::string& key, const toml::node& value, Hardware& hardware) const {
  if (const HardwareText* text = FindKey(HardwareTexts(), key)) {
    if (!value.is_string()) return WrongType(key, value, "a text");
    hardware.*text->member = **value.as_string();
    return Status();
  }
  if (const HardwareFlag* flag = FindKey(HardwareFlags(), key)) {
    if (!value.is_boolean()) return WrongType(key, value, "true or false");
    hardware.*flag->member = **value.as_boolean();
    return Status();
  }
  const HardwareNumber* number = FindKey(HardwareNumbers(), key);
  if (number == nullptr) {
    return Bad(value, WithHint(fmt::format("no key '{}'{}", key, DidYouMean(key, AllKeys())),
                               "`ridge devices show h100-sxm --toml` has most keys"));
  }
  const std::optional<double> is = value.value<double>();
  if (!value.is_number() || !is || !(*is >= 0 && *is < 1e15))
    return WrongType(key, value, "a number of at least 0");
  hardware.*number->member = *is;
  return Status();
}

const Hardware* FindById(const std::vector<Hardware>& devices, const std::string& id) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const Hardware& device) { return device.id == id; });
  return found == devices.end() ? nullptr : &*found;
}

std::vector<std::string> Ids(const std::vector<Hardware>& devices) {
  std::vector<std::string> ids;
  for (const Hardware& device : devices) ids.push_back(device.id);
  return ids;
}

// What `like` names: a device of the program's catalog, whose source stays with it.
Result<Hardware> Base(const Reader& reader, const toml::table& table) {
  const toml::node* like = table.get(kLike);
  if (like == nullptr) return Hardware();
  const std::string id = like->value_or(std::string());
  const Hardware* base = FindById(HardwareCatalog(), id);
  if (base != nullptr) return *base;
  return reader.Bad(*like, fmt::format("like is '{}', which is no device{}", id,
                                       DidYouMean(id, Ids(HardwareCatalog()))));
}

Result<Hardware> ReadDevice(const Reader& reader, const std::string& id, const toml::table& table) {
  RIDGE_ASSIGN_OR_RETURN(Hardware hardware, Base(reader, table));
  hardware.id = id;
  // By line, so that the first mistake of the file is the one that is told.
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (const auto& [key, value] : table) {
    if (key.str() != kLike) entries.emplace_back(key.str(), &value);
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.second->source().begin.line < b.second->source().begin.line;
  });
  for (const auto& [key, value] : entries)
    RIDGE_RETURN_IF_ERROR(reader.Take(key, *value, hardware));
  if (hardware.name.empty()) hardware.name = id;
  return hardware;
}

// The tables of a file in the order of its lines.
std::vector<std::pair<std::string, const toml::node*>> InOrder(const toml::table& file) {
  std::vector<std::pair<std::string, const toml::node*>> nodes;
  for (const auto& [key, value] : file) nodes.emplace_back(key.str(), &value);
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.second->source().begin.line < b.second->source().begin.line;
  });
  return nodes;
}

// "my.toml:ID" and "my.toml"
struct FileAndId {
  std::string path, id;
};

std::optional<FileAndId> AsFile(const std::string& text) {
  constexpr std::string_view kSuffix = ".toml";
  if (text.ends_with(kSuffix)) return FileAndId{text, ""};
  const size_t at = text.rfind(".toml:");
  if (at == std::string::npos) return std::nullopt;
  return FileAndId{text.substr(0, at + kSuffix.size()), text.substr(at + kSuffix.size() + 1)};
}

Result<Hardware> FindInFile(const FileAndId& file) {
  constexpr int64_t kMostBytes = 16 << 20;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file.path, kMostBytes));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Hardware> devices, ParseHardware(text, file.path));
  if (file.id.empty() && devices.size() == 1) return devices.front();
  if (file.id.empty()) {
    return InvalidArgument(fmt::format("{} has {} devices. hint: {}:{}", file.path, devices.size(),
                                       file.path, devices.front().id));
  }
  const Hardware* found = FindById(devices, file.id);
  if (found != nullptr) return *found;
  return InvalidArgument(fmt::format("{} has no device '{}'{}", file.path, file.id,
                                     DidYouMean(file.id, Ids(devices))));
}

}  // namespace

Result<std::vector<Hardware>> ParseHardware(std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  const Reader reader(path);
  std::vector<Hardware> devices;
  for (const auto& [id, node] : InOrder(parsed.table())) {
    const toml::table* table = node->as_table();
    if (table == nullptr) {
      return reader.Bad(*node, fmt::format("{} stands outside of a device. hint: begin with a line "
                                           "such as [my-gpu]",
                                           id));
    }
    RIDGE_ASSIGN_OR_RETURN(Hardware hardware, ReadDevice(reader, id, *table));
    devices.push_back(std::move(hardware));
  }
  if (!devices.empty()) return devices;
  return Status(ErrorCode::kInvalidData,
                path + ": has no device. hint: begin with a line such as [my-gpu]");
}

const std::vector<Hardware>& HardwareCatalog() {
  static const std::vector<Hardware> kCatalog = [] {
    Result<std::vector<Hardware>> parsed = ParseHardware(kDeviceCatalog, kBuiltIn);
    RIDGE_CHECK(parsed.ok(), parsed.status().message());
    return std::move(*parsed);
  }();
  return kCatalog;
}

Result<Hardware> FindHardware(const std::string& text) {
  if (const std::optional<FileAndId> file = AsFile(text)) return FindInFile(*file);
  const Hardware* found = FindById(HardwareCatalog(), text);
  if (found != nullptr) return *found;
  const std::string what =
      fmt::format("no device '{}'{}", text, DidYouMean(text, Ids(HardwareCatalog())));
  return InvalidArgument(WithHint(what, "`ridge devices` lists all"));
}

}  // namespace ridge
