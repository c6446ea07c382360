#include "ridge/use/contact_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/data/batch_spec.h"
#include "ridge/data/image/mask_picture.h"
#include "ridge/data/image/resize.h"
#include "ridge/data/mask_folder.h"
#include "ridge/data/permutation.h"
#include "ridge/report/html.h"
#include "ridge/use/box_writer.h"
#include "ridge/use/sheet_letters.h"

namespace ridge {
namespace {

constexpr int64_t kGap = 6;
constexpr int64_t kLeastElements = 64;    // of a field that is a picture without its name
constexpr int64_t kMostSought = 200'000;  // labels that are read to fill the rows
constexpr uint32_t kStream = 0x5EE7;      // of the order in which samples are offered

// ---- a field as a picture

struct Layout {
  ImageSize size;
  int64_t channels = 1;
  bool channels_first = false;
  int64_t begin = 0;  // its first element
};

// Of a clip [N,...] its middle frame.
std::optional<Layout> LayoutOf(const TensorType& type) {
  const Dims& dims = type.dims;
  if (dims.size() == 4) {
    const TensorType frame{type.dtype, Dims(dims.begin() + 1, dims.end())};
    std::optional<Layout> layout = LayoutOf(frame);
    if (layout) layout->begin = dims[0] / 2 * frame.elements();
    return layout;
  }
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  if (dims.size() == 2) return Layout{{dims[0], dims[1]}, 1, false};
  if (dims.size() != 3) return std::nullopt;
  if (is_channels(dims[2])) return Layout{{dims[0], dims[1]}, dims[2], false};
  if (is_channels(dims[0])) return Layout{{dims[1], dims[2]}, dims[0], true};
  return std::nullopt;
}

// What becomes black and white: 0 and 255 of bytes, 0 and 1 of numbers between them, else the least
// and the largest number.
struct Levels {
  double black = 0, white = 255;
};

Levels LevelsOf(const TensorType& type, const char* data) {
  if (type.dtype == DType::kU8) return {};
  double least = INFINITY, most = -INFINITY;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double value = LoadAsDouble(type.dtype, data, i);
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (least >= 0 && most <= 1) return {0, 1};
  if (least >= 0 && most <= 255) return {};
  return {least, most > least ? most : least + 1};
}

uint8_t Level(double value, const Levels& levels) {
  if (!std::isfinite(value)) return 0;
  const double level = 255 * (value - levels.black) / (levels.white - levels.black);
  return static_cast<uint8_t>(std::clamp(std::round(level), 0.0, 255.0));
}

RgbPicture ToRgb(const TensorType& type, const Layout& layout, const char* data) {
  RgbPicture picture = RgbPicture::Filled(layout.size, 0);
  const Levels levels = LevelsOf(type, data);
  const int64_t pixels = layout.size.height * layout.size.width;
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < 3; ++c) {
      const int64_t channel = layout.channels == 1 ? 0 : c;
      const int64_t at =
          layout.channels_first ? channel * pixels + p : p * layout.channels + channel;
      picture.pixels[static_cast<size_t>(3 * p + c)] =
          Level(LoadAsDouble(type.dtype, data, layout.begin + at), levels);
    }
  }
  return picture;
}

// In a square of kSheetSide: small pictures are enlarged with visible pixels.
RgbPicture Fit(RgbPicture picture) {
  const ImageSize from = picture.size;
  const double scale =
      static_cast<double>(kSheetSide) / static_cast<double>(std::max(from.height, from.width));
  const auto side = [&](int64_t extent) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(extent) * scale));
  };
  const ImageSize to = {side(from.height), side(from.width)};
  const ResizeCall call =
      FitPicture(from, to, ImageFit::kStretch,
                 scale > 1 ? ResizeFilter::kNearest : ResizeFilter::kBilinear, 3);
  picture.pixels.resize(picture.pixels.size() + kResizeSlackBytes);
  std::vector<char> scratch(static_cast<size_t>(ResizeScratchBytes(call)));
  RgbPicture fitted = RgbPicture::Filled(to, 0);
  Resize(call, picture.pixels.data(), scratch, fitted.pixels.data());
  return fitted;
}

void ScaleBoxes(const ImageSize& from, const ImageSize& to, std::vector<TitledBox>& boxes) {
  const double x = static_cast<double>(to.width) / static_cast<double>(from.width);
  const double y = static_cast<double>(to.height) / static_cast<double>(from.height);
  for (TitledBox& titled : boxes) {
    DetectedBox& box = titled.box;
    box.x1 *= x;
    box.x2 *= x;
    box.y1 *= y;
    box.y2 *= y;
  }
}

// ---- which samples

class Picker {
 public:
  Picker(const Source& source, const Preprocessing* preprocessing)
      : source_(source),
        preprocessing_(preprocessing),
        scratch_(static_cast<size_t>(source.scratch_bytes())) {}

  Result<std::vector<SheetRow>> Pick(uint64_t seed) {
    RIDGE_RETURN_IF_ERROR(FindImage());
    FindLabel();
    MakeRows();
    const Permutation order(source_.size(), seed, kStream, /*epoch=*/0);
    const int64_t most = std::min(source_.size(), kMostSought);
    for (int64_t i = 0; i < most && open_ > 0; ++i) RIDGE_RETURN_IF_ERROR(Offer(order.At(i)));
    std::erase_if(rows_, [](const SheetRow& row) { return row.pictures.empty(); });
    return std::move(rows_);
  }

 private:
  const Field& field(int index) const { return source_.fields()[static_cast<size_t>(index)]; }
  const TensorType& type() const { return field(image_).type; }

  Status FindImage() {
    if (const Field* named = FindFieldByName("image", source_.fields()))
      image_ = source_.FindField(named->name);
    for (size_t f = 0; image_ < 0 && f < source_.fields().size(); ++f) {
      const TensorType& type = source_.fields()[f].type;
      if (LayoutOf(type) && type.elements() >= kLeastElements) image_ = static_cast<int>(f);
    }
    if (image_ >= 0 && LayoutOf(type())) return Status();
    return Status(ErrorCode::kUnsupported,
                  source_.name() +
                      ": has no pictures for a contact sheet: no field is [H,W], "
                      "[H,W,3], [3,H,W] or a clip of them");
  }

  void FindLabel() {
    const Field* label = FindFieldByName("label", source_.fields());
    if (label != nullptr && label->classes > 0 && label->type.elements() == 1)
      label_ = source_.FindField(label->name);
    FindBoxes();
    if (const Field* mask = FindMaskField(source_.fields())) mask_ = source_.FindField(mask->name);
  }

  void FindBoxes() {
    const int boxes = source_.FindField("boxes"), classes = source_.FindField("classes");
    if (label_ >= 0 || boxes < 0 || classes < 0 || names() == 0) return;
    const Dims &sides = field(boxes).type.dims, &labels = field(classes).type.dims;
    if (labels.size() != 1 || sides != Dims{labels[0], 4}) return;
    boxes_ = boxes;
    label_ = classes;
  }

  // Those that are there; pixels of the picture that is read.
  Result<std::vector<TitledBox>> ReadBoxes(int64_t index) {
    std::vector<TitledBox> boxes;
    if (boxes_ < 0) return boxes;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<double> sides, ReadNumbers(index, boxes_));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<double> labels, ReadNumbers(index, label_));
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0) continue;  // behind the last one
      const double* side = sides.data() + 4 * i;
      boxes.push_back(
          {{side[0], side[1], side[2], side[3], 1, static_cast<int64_t>(labels[i])}, ""});
    }
    return boxes;
  }

  Result<std::vector<double>> ReadNumbers(int64_t index, int from) {
    const TensorType& type = field(from).type;
    std::vector<char> data(static_cast<size_t>(type.bytes()));
    RIDGE_RETURN_IF_ERROR(source_.Read({index}, from, scratch_, data.data()));
    std::vector<double> numbers;
    for (int64_t i = 0; i < type.elements(); ++i)
      numbers.push_back(LoadAsDouble(type.dtype, data.data(), i));
    return numbers;
  }

  // Over its picture; a label without a class is white.
  Status DrawMask(int64_t index, RgbPicture& picture) {
    if (mask_ < 0) return Status();
    RIDGE_ASSIGN_OR_RETURN(const std::vector<double> labels, ReadNumbers(index, mask_));
    std::vector<uint8_t> ids;
    for (const double label : labels)
      ids.push_back(static_cast<uint8_t>(label >= 0 && label < 255 ? label : 255));
    OverlayMask(ids, picture);
    return Status();
  }

  int64_t names() const {
    return preprocessing_ == nullptr ? 0 : static_cast<int64_t>(preprocessing_->classes.size());
  }

  std::string ClassName(int64_t c) const {
    return c < names() ? preprocessing_->classes[static_cast<size_t>(c)] : std::to_string(c);
  }

  void MakeRows() {
    const int64_t classes = label_ < 0    ? kSheetColumns
                            : boxes_ >= 0 ? names()
                                          : field(label_).classes;
    for (int64_t i = 0; i < std::min(classes, kMostSheetRows); ++i)
      rows_.push_back({label_ < 0 ? "" : ClassName(i), {}, {}});
    open_ = static_cast<int64_t>(rows_.size());
  }

  Result<int64_t> RowOf(int64_t index) {
    if (label_ < 0) return static_cast<int64_t>(rows_.size()) - open_;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<double> labels, ReadNumbers(index, label_));
    return static_cast<int64_t>(labels[0]);  // -1 without a box
  }

  // A sample that cannot be read is left out: the survey tells of it.
  Status Offer(int64_t index) {
    const Status status = Take(index);
    return IsBadRecord(status) ? Status() : status;
  }

  Status Take(int64_t index) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t found, RowOf(index));
    if (found < 0 || found >= static_cast<int64_t>(rows_.size())) return Status();
    SheetRow& row = rows_[static_cast<size_t>(found)];
    constexpr auto kFull = static_cast<size_t>(kSheetColumns);
    if (row.pictures.size() == kFull) return Status();
    std::vector<char> data(static_cast<size_t>(type().bytes()));
    RIDGE_RETURN_IF_ERROR(source_.Read({index}, image_, scratch_, data.data()));
    RgbPicture picture = ToRgb(type(), *LayoutOf(type()), data.data());
    RIDGE_RETURN_IF_ERROR(DrawMask(index, picture));
    RIDGE_ASSIGN_OR_RETURN(std::vector<TitledBox> boxes, ReadBoxes(index));
    const ImageSize size = picture.size;
    picture = Fit(std::move(picture));
    ScaleBoxes(size, picture.size, boxes);
    DrawBoxes(boxes, picture);
    row.pictures.push_back(std::move(picture));
    row.origins.push_back(source_.Origin(index));
    if (row.pictures.size() == kFull) --open_;
    return Status();
  }

  const Source& source_;
  const Preprocessing* preprocessing_;
  std::vector<char> scratch_;
  int image_ = -1, label_ = -1, mask_ = -1, boxes_ = -1;
  std::vector<SheetRow> rows_;
  int64_t open_ = 0;  // rows that are not full
};

// ---- the picture

void DrawPicture(const RgbPicture& picture, int64_t y, int64_t x, RgbPicture& onto) {
  y += (kSheetSide - picture.size.height) / 2;
  x += (kSheetSide - picture.size.width) / 2;
  for (int64_t row = 0; row < picture.size.height; ++row) {
    std::copy_n(picture.pixels.data() + 3 * row * picture.size.width, 3 * picture.size.width,
                onto.At(y + row, x));
  }
}

std::string ShortTitle(const SheetRow& row) {
  constexpr size_t kMostLetters = 20;
  return Drawable(row.title).substr(0, kMostLetters);
}

// ---- the page

constexpr const char* kStyle =
    "img{margin:0 4px 4px 0;image-rendering:pixelated;vertical-align:top}\n";

}  // namespace

Result<std::vector<SheetRow>> PickSheet(const Source& source, const Preprocessing* preprocessing,
                                        uint64_t seed) {
  return Picker(source, preprocessing).Pick(seed);
}

RgbPicture DrawSheet(const std::vector<SheetRow>& rows) {
  int64_t letters = 0, columns = 1;
  for (const SheetRow& row : rows) {
    letters = std::max(letters, static_cast<int64_t>(ShortTitle(row).size()));
    columns = std::max(columns, static_cast<int64_t>(row.pictures.size()));
  }
  const int64_t left = kGap + (letters == 0 ? 0 : letters * kLetterWidth + kGap);
  constexpr int64_t kStep = kSheetSide + kGap;
  const auto count = static_cast<int64_t>(rows.size());
  RgbPicture sheet =
      RgbPicture::Filled({count * kStep + kGap, left + columns * kStep}, /*value=*/255);
  for (int64_t r = 0; r < count; ++r) {
    const SheetRow& row = rows[static_cast<size_t>(r)];
    const int64_t y = kGap + r * kStep;
    DrawText(ShortTitle(row), y + (kSheetSide - kLetterHeight) / 2, kGap, sheet);
    for (size_t i = 0; i < row.pictures.size(); ++i)
      DrawPicture(row.pictures[i], y, left + static_cast<int64_t>(i) * kStep, sheet);
  }
  return sheet;
}

std::string SheetHtml(const std::string& title, const std::vector<SheetRow>& rows) {
  std::string body;
  for (const SheetRow& row : rows) {
    if (!row.title.empty()) body += fmt::format("<h2>{}</h2>\n", HtmlEscaped(row.title));
    for (size_t i = 0; i < row.pictures.size(); ++i)
      body += HtmlPicture(row.pictures[i], row.title, row.origins[i]);
  }
  return HtmlPage(title, body, kStyle);
}

}  // namespace ridge
