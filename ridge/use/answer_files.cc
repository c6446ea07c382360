#include "ridge/use/answer_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "ridge/data/image/decode.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/picture_file.h"

namespace ridge {

namespace fs = std::filesystem;

std::string AnswerPaths::Next(const std::string& input) {
  std::error_code error;
  fs::create_directories(folder_, error);  // what cannot be made is named by the writing
  const bool is_file = IsPictureFile(input);
  const std::string name = (is_file ? fs::path(input).stem() : fs::path(input).filename()).string();
  std::string path = folder_ + "/" + name;
  for (int number = 2; !taken_.insert(path).second; ++number)
    path = fmt::format("{}/{}-{}", folder_, name, number);
  return path;
}

Result<RgbPicture> ReadRgb(const std::string& path) {
  std::vector<char> buffer;
  RIDGE_ASSIGN_OR_RETURN(const PictureFile file, InspectPicture(path, buffer));
  buffer.resize(static_cast<size_t>(file.stamp.bytes));
  RIDGE_RETURN_IF_ERROR(ReadPicture(path, file.stamp, buffer.data()));
  RgbPicture picture{{file.header.height, file.header.width}, {}};
  picture.pixels.resize(static_cast<size_t>(DecodedBytes(file.header)));
  const Status decoded =
      DecodeImage(PictureBytes(buffer.data(), file.stamp.bytes), file.header, picture.pixels);
  if (!decoded.ok()) return Status(decoded.code(), path + ": " + decoded.message());
  picture.pixels.resize(static_cast<size_t>(3 * file.header.pixels()));
  return picture;
}

}  // namespace ridge
