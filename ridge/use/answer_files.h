// Files of answers that are pictures: their names, and the pictures that are drawn on.
#pragma once
#include <set>
#include <string>

#include "ridge/core/status.h"
#include "ridge/data/image/encode.h"

namespace ridge {

class AnswerPaths {
 public:
  explicit AnswerPaths(std::string folder) : folder_(std::move(folder)) {}

  // "photos/a.jpg" -> "FOLDER/a", then "FOLDER/a-2"; makes the folder.
  std::string Next(const std::string& input);

 private:
  const std::string folder_;
  std::set<std::string> taken_;
};

// The pixels of a picture file.  Fails as reading and decoding do; the message names the file.
Result<RgbPicture> ReadRgb(const std::string& path);

}  // namespace ridge
