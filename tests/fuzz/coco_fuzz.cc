// A file of any bytes: boxes that are taken lie in their pictures, and paths in the folder.
#include "ridge/data/coco.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bad =
      std::make_shared<ridge::BadRecords>(*ridge::BadRecordsPolicy::Parse("skip:1000000"));
  const auto sets = ridge::ParseCoco(text, "file", "folder", bad);
  if (!sets.ok()) return 0;
  for (const ridge::PictureObjects& picture : sets->train) {
    RIDGE_CHECK(picture.path.starts_with("folder/"), picture.path);
    for (const ridge::ObjectBox& box : picture.boxes) {
      RIDGE_CHECK(box.x1 >= 0 && box.x1 < box.x2 && box.x2 <= 1, "from left to right");
      RIDGE_CHECK(box.y1 >= 0 && box.y1 < box.y2 && box.y2 <= 1, "from top to bottom");
      RIDGE_CHECK(
          box.object_class >= 0 && box.object_class < static_cast<int64_t>(sets->classes.size()),
          "a class");
    }
  }
  return 0;
}
