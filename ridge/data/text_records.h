// Text records: the pieces of a file that become samples.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

struct TextRecord {
  std::string_view text;
  int64_t line = 1;    // its first, from 1
  int64_t offset = 0;  // of its first byte, in what a gzip file unpacks to
};

using RecordVisitor = std::function<Status(const TextRecord& record)>;

// Calls `visit` for each record of a plain or gzip file.
// `form`: "line", "paragraph" (empty lines cut), "file", else the line that cuts, as "%".
// White space around a record goes, but for "file"; empty ones are left out.
// Fails with kInvalidData, also for a record above 256 MiB.
Status ForEachRecord(const std::string& path, const std::string& form, const RecordVisitor& visit);

}  // namespace ridge
