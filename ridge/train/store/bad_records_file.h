// bad_records.jsonl of a run: a line for each sample that was skipped, with its file and the
// reason.
#pragma once
#include <string>

#include "ridge/data/bad_records.h"

namespace ridge {

inline constexpr char kBadRecordsFile[] = "bad_records.jsonl";

// Replaces the file with the whole list.
Status WriteBadRecords(const std::string& path, const std::vector<BadRecord>& records);

// What an earlier part of the run found; nothing when there is no such file.  Fails with
// kInvalidData.
Result<std::vector<BadRecord>> ReadBadRecords(const std::string& path);

}  // namespace ridge
