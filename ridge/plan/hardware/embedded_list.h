// The program's own lists: TOML texts of one array of tables.
#pragma once
#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/split.h"
#include "ridge/core/status.h"

namespace ridge {

// Each table of the array `key` as `read` has it.  REQUIRES: `text`, the file `name`, is such a
// list.
template <typename Row>
std::vector<Row> ReadEmbeddedList(std::string_view text, const std::string& name,
                                  std::string_view key, Row (*read)(const toml::table&)) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) throw Bug(name + ": " + std::string(parsed.error().description()));
  std::vector<Row> rows;
  for (const toml::node& node : *parsed.table()[key].as_array())
    rows.push_back(read(*node.as_table()));
  return rows;
}

inline std::string TextAt(const toml::table& row, std::string_view key) {
  return row[key].value<std::string>().value_or("");
}

// "a,b": its parts.
inline std::vector<std::string> ListAt(const toml::table& row, std::string_view key) {
  std::vector<std::string> parts;
  const std::string text = TextAt(row, key);
  for (const std::string_view part : SplitAt(text, ',')) parts.emplace_back(part);
  return parts;
}

}  // namespace ridge
