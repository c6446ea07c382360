#include "ridge/use/box_writer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ridge/data/image_folder.h"
#include "ridge/data/picture_file.h"
#include "ridge/use/sheet_letters.h"

namespace ridge {
namespace {

using Color = std::array<uint8_t, 3>;

Color ColorOf(int64_t label) {
  constexpr Color kColors[] = {{230, 40, 60},  {20, 130, 220}, {250, 150, 0},  {40, 170, 70},
                               {200, 60, 200}, {0, 175, 180},  {170, 110, 40}, {255, 215, 0},
                               {120, 80, 230}, {255, 110, 160}};
  return kColors[label % std::ssize(kColors)];
}

// [y1, y2) x [x1, x2), cut at the edges.
void Fill(int64_t y1, int64_t x1, int64_t y2, int64_t x2, const Color& color, RgbPicture& onto) {
  for (int64_t y = std::max<int64_t>(y1, 0); y < std::min(y2, onto.size.height); ++y) {
    for (int64_t x = std::max<int64_t>(x1, 0); x < std::min(x2, onto.size.width); ++x)
      std::copy(color.begin(), color.end(), onto.At(y, x));
  }
}

// So that lines are seen on large pictures too.
int64_t LineWidth(const ImageSize& size) {
  return std::clamp<int64_t>(std::max(size.height, size.width) / 160, 2, 10);
}

void DrawBox(const TitledBox& titled, RgbPicture& onto) {
  const auto pixel = [](double side) { return static_cast<int64_t>(std::lround(side)); };
  const DetectedBox& box = titled.box;
  const int64_t x1 = pixel(box.x1), y1 = pixel(box.y1), x2 = pixel(box.x2), y2 = pixel(box.y2);
  const int64_t line = LineWidth(onto.size);
  const Color color = ColorOf(box.label);
  Fill(y1, x1, y1 + line, x2, color, onto);
  Fill(y2 - line, x1, y2, x2, color, onto);
  Fill(y1, x1, y2, x1 + line, color, onto);
  Fill(y1, x2 - line, y2, x2, color, onto);
  const std::string title = Drawable(titled.title);
  if (title.empty()) return;
  constexpr int64_t kMargin = 2;
  constexpr Color kPaper = {255, 255, 255};  // the letters are dark
  const int64_t height = kLetterHeight + kMargin;
  const int64_t width = std::ssize(title) * kLetterWidth + kMargin;
  const int64_t top = y1 >= height ? y1 - height : y1 + line;
  Fill(top, x1, top + height, x1 + width, kPaper, onto);
  Fill(top, x1, top + height, x1 + line, color, onto);
  DrawText(title, top + kMargin, x1 + line + 1, onto);
}

}  // namespace

PictureFrame FrameOf(const ImageSize& picture, const PictureTarget& target) {
  const ResizeCall call =
      FitPicture(picture, target.size, target.fit, target.filter, /*channels=*/3);
  const auto scale = [](const ResizeAxis& axis) {
    return static_cast<double>(axis.out) / static_cast<double>(axis.in);
  };
  return {scale(call.x),
          scale(call.y),
          -static_cast<double>(call.x.first),
          -static_cast<double>(call.y.first),
          static_cast<double>(picture.width),
          static_cast<double>(picture.height)};
}

void DrawBoxes(std::span<const TitledBox> boxes, RgbPicture& onto) {
  for (size_t i = boxes.size(); i-- > 0;) DrawBox(boxes[i], onto);
}

Result<std::vector<DetectedBox>> BoxesOfInput(std::vector<DetectedBox> boxes,
                                              const std::string& input,
                                              const std::optional<PictureTarget>& target) {
  if (!target) return boxes;
  ImageSize picture = target->size;
  PictureFrame frame = FrameOf(picture, *target);
  if (IsPictureFile(input)) {
    std::vector<char> buffer;
    RIDGE_ASSIGN_OR_RETURN(const PictureFile file, InspectPicture(input, buffer));
    frame = FrameOf({file.header.height, file.header.width}, *target);
  }
  for (DetectedBox& box : boxes) box = InPicture(box, frame);
  return boxes;
}

}  // namespace ridge
