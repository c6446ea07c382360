#include "ridge/train/store/bad_records_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ridge/core/files.h"

namespace ridge {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

}  // namespace

Status WriteBadRecords(const std::string& path, const std::vector<BadRecord>& records) {
  std::string text;
  for (const BadRecord& record : records) {
    const nlohmann::ordered_json line = {{"file", record.origin}, {"reason", record.reason}};
    text += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  return WriteFileAtomically(path, text);
}

Result<std::vector<BadRecord>> ReadBadRecords(const std::string& path) {
  std::vector<BadRecord> records;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return records;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    try {
      const auto json = nlohmann::json::parse(line);
      records.push_back({json.at("file").get<std::string>(), json.at("reason").get<std::string>()});
    } catch (const std::exception& wrong) {
      return Status(ErrorCode::kInvalidData, fmt::format("{}: line {} cannot be read: {}", path,
                                                         records.size() + 1, wrong.what()));
    }
  }
  return records;
}

}  // namespace ridge
