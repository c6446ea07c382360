// PictureFile: the files that sources of pictures read, one at a time.
//
// The message of a failure names the file and the reason; its code is kInvalidData.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/file_stamp.h"
#include "ridge/data/image/header.h"

namespace ridge {

struct PictureFile {
  ImageHeader header;
  FileStamp stamp;
};

// What the file's first bytes tell, and its stamp.  `buffer` is memory to read into, for many files
// in a row.
Result<PictureFile> InspectPicture(const std::string& path, std::vector<char>& buffer);

// All of a file, which must have its stamp still; `to`: stamp.bytes.
Status ReadPicture(const std::string& path, const FileStamp& stamp, char* to);

// As the decoders take them.
std::span<const uint8_t> PictureBytes(const char* data, int64_t count);

}  // namespace ridge
