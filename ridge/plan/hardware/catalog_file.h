// Catalog files: TOML with one table an entry, whose keys hold texts, numbers of at least 0, or
// flags.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// The key that takes what a table leaves out from an entry of the program's own catalog.
inline constexpr const char* kLikeKey = "like";

enum class CatalogType : uint8_t { kText, kNumber, kFlag };

struct CatalogKey {
  const char* key;
  CatalogType type;
};

// What a catalog is of, for its messages.
struct CatalogForm {
  const char* entry;               // "device"
  const char* example;             // "my-gpu"
  const char* hint;                // where the keys are shown
  std::vector<CatalogKey> keys;    // without kLikeKey
  std::vector<std::string> known;  // what `like` may name
};

struct CatalogValue {
  std::string key;
  std::variant<std::string, double, bool> value;
  int64_t line = 0;
};

struct CatalogTable {
  std::string id;
  std::string like;                  // empty: of nothing
  std::vector<CatalogValue> values;  // in the order of their lines, without `like`
};

// The tables in the order of their lines.  Fails with kInvalidData for text that is no TOML,
// unknown keys, values of another type, an unknown `like` and a file without a table; the message
// has file and line of the first mistake.
Result<std::vector<CatalogTable>> ParseCatalog(std::string_view text, const std::string& path,
                                               const CatalogForm& form);

// "my.toml:ID" and "my.toml", whose id is empty.
struct CatalogFile {
  std::string path, id;
};

// None for a text that names no file.
std::optional<CatalogFile> AsCatalogFile(const std::string& text);

// The text of a user's catalog.  Fails as ReadFile.
Result<std::string> ReadCatalogFile(const std::string& path);

// How a search for an entry speaks.
struct CatalogSearch {
  const char* entry;  // "device"
  const char* hint;   // "`ridge devices` lists all"
};

// "no device 'h100'; did you mean 'h100-sxm'? hint: ..."
Status NoEntry(const CatalogSearch& search, const std::string& id,
               const std::vector<std::string>& known);
// "my.toml has no device 'h100'"; without an id that it has several.
Status NoEntryInFile(const CatalogSearch& search, const CatalogFile& file,
                     const std::vector<std::string>& known);

// The row with the id; nullptr: none.
template <typename Row>
const Row* FindById(const std::vector<Row>& rows, std::string_view id) {
  for (const Row& row : rows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

template <typename Row>
std::vector<std::string> IdsOf(const std::vector<Row>& rows) {
  std::vector<std::string> ids;
  for (const Row& row : rows) ids.push_back(row.id);
  return ids;
}

// An entry of the program's catalog by its id, or of a file: "my.toml", or "my.toml:ID" when it has
// several.  Fails with kInvalidArgument for an unknown id, else as `parse` and ReadCatalogFile.
template <typename Row>
Result<Row> FindEntry(const std::string& text, const CatalogSearch& search,
                      const std::vector<Row>& catalog,
                      Result<std::vector<Row>> (*parse)(std::string_view, const std::string&)) {
  const std::optional<CatalogFile> file = AsCatalogFile(text);
  if (!file) {
    if (const Row* found = FindById(catalog, text)) return *found;
    return NoEntry(search, text, IdsOf(catalog));
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string content, ReadCatalogFile(file->path));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Row> rows, parse(content, file->path));
  if (file->id.empty() && rows.size() == 1) return rows.front();
  if (const Row* found = FindById(rows, file->id)) return *found;
  return NoEntryInFile(search, *file, IdsOf(rows));
}

}  // namespace ridge
