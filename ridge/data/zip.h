// Zip archives, as far as .npz needs them: the directory, one entry as a stream, and writing stored
// entries.  Reads zip64.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ridge/data/byte_stream.h"

namespace ridge {

struct ZipEntry {
  std::string name;
  int64_t bytes = 0;         // of the content
  int64_t stored_bytes = 0;  // in the archive
  bool deflated = false;
  uint32_t crc32 = 0;
  int64_t header_offset = 0;
};

// In the archive's order.  Fails with kInvalidData: not a zip file, cut off, encrypted, compressed
// by another method than deflate, or an entry that declares more than its bytes can hold.
Result<std::vector<ZipEntry>> ReadZipDirectory(const std::string& path);

// The content of one entry; messages call it "PATH('NAME')".
Result<std::unique_ptr<ByteStream>> OpenZipEntry(const std::string& path, const ZipEntry& entry);

// An archive of stored (not compressed) entries, with a fixed date: equal input, equal bytes.
// Each entry's content is the concatenation of its pieces.
// Fails with kUnsupported at 4 GiB or 65,535 entries, where the plain zip format ends.
struct ZipContent {
  std::string name;
  std::vector<std::string_view> pieces;
};
Result<std::string> MakeZip(const std::vector<ZipContent>& entries);

}  // namespace ridge
