// ContactSheet: some samples of each class on one page, as PNG or HTML.
//
// Samples are those that training gets before they are normalized: decoded, resized, augmented.
// Masks and the outlines of boxes lie over their pictures; a picture with boxes stands in the row
// of its first box's class.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/image/encode.h"
#include "ridge/data/source.h"

namespace ridge {

struct SheetRow {
  std::string title;                 // "cat"
  std::vector<RgbPicture> pictures;  // at most kSheetSide a side
  std::vector<std::string> origins;  // of each picture
};

inline constexpr int64_t kMostSheetRows = 40;
inline constexpr int64_t kSheetColumns = 10;
inline constexpr int64_t kSheetSide = 96;  // pixels

// At most kMostSheetRows classes with up to kSheetColumns samples each, drawn by `seed`; without
// classes all rows are without a title.  Samples that cannot be read are left out.  Fails with
// kUnsupported when the data have no field that is a picture, and as reading does.
Result<std::vector<SheetRow>> PickSheet(const Source& source, const Preprocessing* preprocessing,
                                        uint64_t seed);

RgbPicture DrawSheet(const std::vector<SheetRow>& rows);
// One file without references, for light and dark screens.
std::string SheetHtml(const std::string& title, const std::vector<SheetRow>& rows);

}  // namespace ridge
