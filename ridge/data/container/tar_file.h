// Tar archives: the members of ustar, GNU and pax archives, by their headers alone.
//
// A header is 512 bytes, the content follows, padded to 512.  Names and sizes may come from a
// header before it: GNU's 'L', pax's 'x'.  Sizes are octal or, above 8 GiB, base-256.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "ridge/data/container/file_table.h"

namespace ridge {

// A regular file of an archive.
struct TarMember {
  std::string name;    // as it stands there: "train/0001.cls"; nothing is ever written to it
  int64_t header = 0;  // where its header begins
  int64_t begin = 0;   // and its content
  int64_t bytes = 0;
};

// Calls `found` for each regular file in order.  Folders and devices are passed over; links and
// sparse files are refused, for their content is elsewhere.  Fails with kInvalidData: "FILE: member
// 'a.jpg' at byte 512: reason"; the archive must end with its mark.
Status ForEachMember(const FileTable& files, int64_t file, FileWindow& window,
                     const std::function<Status(const TarMember&)>& found);

}  // namespace ridge
