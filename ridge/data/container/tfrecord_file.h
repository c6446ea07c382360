// TFRecord files: a chain of records, each of
//
//   u64 length   u32 masked CRC-32C of it   length bytes   u32 masked CRC-32C of them
//
// in little-endian.  A length is believed when its checksum is right and the file holds as much.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ridge/data/container/example.h"
#include "ridge/data/container/file_table.h"

namespace ridge {

constexpr int64_t kRecordHeaderBytes = 12;
constexpr int64_t kRecordFooterBytes = 4;

// Whether a file that begins with these bytes (16, if it has them) begins with a record.
bool BeginsAsRecord(std::string_view start);

// The length that the first 12 bytes say.  Fails with kInvalidData; the message is the bare reason.
Result<int64_t> ReadRecordLength(std::string_view header);

// Fails with kInvalidData unless `stored` is the checksum of the record; the bare reason.
Status CheckRecord(std::string_view record, uint32_t stored);

// "FILE: record 3 at byte 512", counted from 0.
std::string RecordPlace(const std::string& path, int64_t number, int64_t offset);

struct RecordInFile {
  FilePlace place;        // of its header
  int64_t number = 0;     // in its file, from 0
  int64_t bytes = 0;      // without header and footer
  uint32_t checksum = 0;  // as the file says it
};

using RecordFunction = std::function<Result<bool>(const RecordInFile& record, RecordView& bytes)>;

// Calls `found` for each record of all files in order, until it returns false.  Checks lengths, not
// the checksums of the records.  A failure of `found` is a bare reason; the place is put before it.
Status ForEachRecord(const FileTable& files, const RecordFunction& found);

}  // namespace ridge
