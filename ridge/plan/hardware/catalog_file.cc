// By toml++, which tells line and column of each value.
#include "ridge/plan/hardware/catalog_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "ridge/core/files.h"
#include "ridge/graph/suggest.h"

namespace ridge {
namespace {

std::string WithHint(const std::string& what, const std::string& hint) {
  return what + (what.ends_with('?') ? " hint: " : ". hint: ") + hint;
}

int64_t LineOf(const toml::node& node) { return node.source().begin.line; }

// The values of a table in the order of their lines, so that the first mistake of a file is the one
// that is told.
std::vector<std::pair<std::string, const toml::node*>> InOrder(const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> nodes;
  for (const auto& [key, value] : table) nodes.emplace_back(key.str(), &value);
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return LineOf(*a.second) < LineOf(*b.second); });
  return nodes;
}

const char* TypeName(const toml::node& node) {
  if (node.is_string()) return "a text";
  if (node.is_number()) return "a number";
  if (node.is_boolean()) return "true or false";
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  return "a date or time";
}

const char* ShouldBe(CatalogType type) {
  switch (type) {
    case CatalogType::kText:
      return "a text";
    case CatalogType::kNumber:
      return "a number of at least 0";
    case CatalogType::kFlag:
      return "true or false";
  }
  return "";
}

// None where the node has another type.
std::optional<std::variant<std::string, double, bool>> ValueOf(const toml::node& node,
                                                               CatalogType type) {
  switch (type) {
    case CatalogType::kText:
      if (node.is_string()) return **node.as_string();
      break;
    case CatalogType::kFlag:
      if (node.is_boolean()) return **node.as_boolean();
      break;
    case CatalogType::kNumber: {
      const std::optional<double> number = node.value<double>();
      if (node.is_number() && number && *number >= 0 && *number < 1e15) return *number;
      break;
    }
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const std::string& path, const CatalogForm& form) : path_(path), form_(form) {}

  Result<std::vector<CatalogTable>> Read(const toml::table& file) const {
    std::vector<CatalogTable> tables;
    for (const auto& [id, node] : InOrder(file)) {
      if (!node->is_table()) {
        return Bad(*node, fmt::format("{} stands outside of a {}. hint: begin with a line such as "
                                      "[{}]",
                                      id, form_.entry, form_.example));
      }
      RIDGE_ASSIGN_OR_RETURN(CatalogTable table, ReadTable(id, *node->as_table()));
      tables.push_back(std::move(table));
    }
    if (!tables.empty()) return tables;
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: has no {}. hint: begin with a line such as [{}]", path_,
                              form_.entry, form_.example));
  }

 private:
  Status Bad(const toml::node& node, const std::string& what) const {
    return Status(ErrorCode::kInvalidData, fmt::format("{}:{}: {}", path_, LineOf(node), what));
  }

  Result<CatalogTable> ReadTable(const std::string& id, const toml::table& from) const {
    CatalogTable table;
    table.id = id;
    for (const auto& [key, node] : InOrder(from)) {
      if (key == kLikeKey) {
        RIDGE_ASSIGN_OR_RETURN(table.like, LikeOf(*node));
        continue;
      }
      RIDGE_ASSIGN_OR_RETURN(CatalogValue value, ReadValue(key, *node));
      table.values.push_back(std::move(value));
    }
    return table;
  }

  Result<std::string> LikeOf(const toml::node& node) const {
    std::string id = node.value_or(std::string());
    if (std::find(form_.known.begin(), form_.known.end(), id) != form_.known.end()) return id;
    return Bad(node, fmt::format("like is '{}', which is no {}{}", id, form_.entry,
                                 DidYouMean(id, form_.known)));
  }

  Result<CatalogValue> ReadValue(const std::string& key, const toml::node& node) const {
    const auto found = std::find_if(form_.keys.begin(), form_.keys.end(),
                                    [&](const CatalogKey& known) { return key == known.key; });
    if (found == form_.keys.end())
      return Bad(node,
                 WithHint(fmt::format("no key '{}'{}", key, DidYouMean(key, Names())), form_.hint));
    auto value = ValueOf(node, found->type);
    if (value) return CatalogValue{key, std::move(*value), LineOf(node)};
    return Bad(node,
               fmt::format("{} is {}; it must be {}", key, TypeName(node), ShouldBe(found->type)));
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names = {kLikeKey};
    for (const CatalogKey& key : form_.keys) names.emplace_back(key.key);
    return names;
  }

  const std::string& path_;
  const CatalogForm& form_;
};

}  // namespace

Result<std::vector<CatalogTable>> ParseCatalog(std::string_view text, const std::string& path,
                                               const CatalogForm& form) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (parsed) return Reader(path, form).Read(parsed.table());
  const toml::parse_error& error = parsed.error();
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
}

std::optional<CatalogFile> AsCatalogFile(const std::string& text) {
  constexpr std::string_view kSuffix = ".toml";
  if (text.ends_with(kSuffix)) return CatalogFile{text, ""};
  const size_t at = text.rfind(".toml:");
  if (at == std::string::npos) return std::nullopt;
  return CatalogFile{text.substr(0, at + kSuffix.size()), text.substr(at + kSuffix.size() + 1)};
}

Result<std::string> ReadCatalogFile(const std::string& path) {
  constexpr int64_t kMostBytes = 16 << 20;
  return ReadFile(path, kMostBytes);
}

Status NoEntry(const CatalogSearch& search, const std::string& id,
               const std::vector<std::string>& known) {
  return InvalidArgument(
      WithHint(fmt::format("no {} '{}'{}", search.entry, id, DidYouMean(id, known)), search.hint));
}

Status NoEntryInFile(const CatalogSearch& search, const CatalogFile& file,
                     const std::vector<std::string>& known) {
  if (file.id.empty()) {
    return InvalidArgument(fmt::format("{} has {} {}s. hint: {}:{}", file.path, known.size(),
                                       search.entry, file.path, known.front()));
  }
  return InvalidArgument(fmt::format("{} has no {} '{}'{}", file.path, search.entry, file.id,
                                     DidYouMean(file.id, known)));
}

}  // namespace ridge
