// Labels and data.yaml of any bytes: boxes that are taken lie in the picture, names are dense.
#include "ridge/data/yolo_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto boxes = ridge::ParseYoloLabels(text);
  if (boxes.ok()) {
    for (const ridge::ObjectBox& box : *boxes) {
      RIDGE_CHECK(box.x1 >= 0 && box.x1 < box.x2 && box.x2 <= 1, "from left to right");
      RIDGE_CHECK(box.y1 >= 0 && box.y1 < box.y2 && box.y2 <= 1, "from top to bottom");
      RIDGE_CHECK(box.object_class >= 0 && box.object_class < ridge::kMostObjectClasses, "a class");
    }
  }
  const auto names = ridge::ParseYoloNames(text);
  if (names.ok()) {
    for (const std::string& name : *names) RIDGE_CHECK(!name.empty(), "a name");
  }
  return 0;
}
