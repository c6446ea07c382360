#include "ridge/use/contact_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ridge/core/test_folder.h"
#include "ridge/data/image/decode.h"
#include "ridge/data/memory_source.h"
#include "ridge/use/sheet_letters.h"

namespace ridge {
namespace {

constexpr int64_t kSamples = 90, kClasses = 4;

// Pictures of one level, 10 * label + 5, and of the type's extents; class 3 has none.
SourcePtr FlatPictures(const TensorType& picture) {
  TensorType type = picture;
  type.dims.insert(type.dims.begin(), kSamples);
  Tensor images(type), labels(TensorType{DType::kI64, {kSamples}});
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t label = i % 50 == 0 ? 2 : i % 2;
    labels.as_mutable<int64_t>()[i] = label;
    for (int64_t k = 0; k < picture.elements(); ++k)
      StoreFromDouble(type.dtype, images.mutable_data(), i * picture.elements() + k,
                      static_cast<double>(10 * label + 5));
  }
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("flat", std::move(fields));
}

Preprocessing Named() {
  Preprocessing named;
  named.classes = {"<ant>", "bee", "c\xC3\xB6w", "dog"};
  return named;
}

bool IsFlat(const RgbPicture& picture, uint8_t level) {
  return std::all_of(picture.pixels.begin(), picture.pixels.end(),
                     [&](uint8_t pixel) { return pixel == level; });
}

// A picture of one level with a box, in the row of its class.
TEST(ContactSheet, BoxesAreOutlinedOverTheirPictures) {
  Tensor images(TensorType{DType::kU8, {2, 48, 48, 3}}), boxes(TensorType{DType::kF32, {2, 1, 4}}),
      classes(TensorType{DType::kI64, {2, 1}});
  std::fill_n(images.as_mutable<uint8_t>(), images.type().elements(), uint8_t{9});
  for (int64_t i = 0; i < 2; ++i) {
    const float sides[] = {12, 6, 36, 30};
    std::copy_n(sides, 4, boxes.as_mutable<float>() + 4 * i);
    classes.as_mutable<int64_t>()[i] = i == 0 ? 1 : -1;  // the second has none
  }
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("boxes", std::move(boxes));
  fields.emplace_back("classes", std::move(classes));
  const Preprocessing named = Named();
  const auto rows = PickSheet(**MemorySource::Create("boxes", std::move(fields)), &named, 1);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].title, "bee");
  ASSERT_EQ((*rows)[0].pictures.size(), 1U);
  RgbPicture picture = (*rows)[0].pictures[0];  // of 96 pixels: the sides are doubled
  EXPECT_NE(picture.At(12, 30)[0], 9);
  EXPECT_NE(picture.At(30, 24)[0], 9);
  EXPECT_NE(picture.At(59, 71)[0], 9);
  EXPECT_EQ(picture.At(36, 48)[0], 9);
  EXPECT_EQ(picture.At(61, 73)[0], 9);
}

TEST(ContactSheet, ARowHoldsPicturesOfItsClassAlone) {
  for (const TensorType& type :
       {TensorType{DType::kU8, {9, 7}}, TensorType{DType::kU8, {150, 200, 3}},
        TensorType{DType::kF32, {3, 8, 8}}}) {
    const Preprocessing named = Named();
    const auto rows = PickSheet(*FlatPictures(type), &named, /*seed=*/3);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    ASSERT_EQ(rows->size(), 3U) << "a class without samples has no row";
    const size_t counts[] = {10, 10, 2};
    for (size_t r = 0; r < 3; ++r) {
      const SheetRow& row = (*rows)[r];
      EXPECT_EQ(row.title, named.classes[r]);
      EXPECT_EQ(row.pictures.size(), counts[r]);
      EXPECT_EQ(std::set<std::string>(row.origins.begin(), row.origins.end()).size(), counts[r]);
      for (const RgbPicture& picture : row.pictures) {
        EXPECT_TRUE(IsFlat(picture, static_cast<uint8_t>(10 * r + 5))) << TypeToString(type);
        EXPECT_EQ(std::max(picture.size.height, picture.size.width), kSheetSide);
      }
    }
  }
}

TEST(ContactSheet, TheSeedChoosesTheSamples) {
  const SourcePtr source = FlatPictures({DType::kU8, {9, 7}});
  const auto origins = [&](uint64_t seed) {
    return (*PickSheet(*source, nullptr, seed))[0].origins;
  };
  EXPECT_EQ(origins(1), origins(1));
  EXPECT_NE(origins(1), origins(2));
}

// From the least to the largest number, where they are no levels.
TEST(ContactSheet, NormalizedNumbersFillTheGreyLevels) {
  Tensor images(TensorType{DType::kF32, {1, 8, 8}});
  for (int64_t i = 0; i < 64; ++i) images.as_mutable<float>()[i] = i < 32 ? -2 : 2;
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  const auto rows = PickSheet(**MemorySource::Create("m", std::move(fields)), nullptr, 0);
  ASSERT_TRUE(rows.ok());
  const std::vector<uint8_t>& pixels = (*rows)[0].pictures[0].pixels;
  EXPECT_EQ(pixels.front(), 0);
  EXPECT_EQ(pixels.back(), 255);
}

TEST(ContactSheet, AClipIsShownByItsMiddleFrame) {
  Tensor clips(TensorType{DType::kU8, {1, 4, 8, 8, 3}});
  for (int64_t i = 0; i < clips.type().elements(); ++i)
    clips.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(50 * (i / (8 * 8 * 3)));
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(clips));
  const auto rows = PickSheet(**MemorySource::Create("m", std::move(fields)), nullptr, 0);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_TRUE(IsFlat((*rows)[0].pictures[0], 100));
}

TEST(ContactSheet, RefusesDataWithoutPictures) {
  Tensor numbers(TensorType{DType::kF32, {5, 4}});
  std::vector<NamedTensor> fields;
  fields.emplace_back("features", std::move(numbers));
  const auto rows = PickSheet(**MemorySource::Create("table", std::move(fields)), nullptr, 0);
  EXPECT_EQ(rows.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(rows.status().message(),
            "table: has no pictures for a contact sheet: no field is [H,W], [H,W,3], [3,H,W] or a "
            "clip of them");
}

TEST(ContactSheet, ThePageHasAllPicturesAndNoReferences) {
  const Preprocessing named = Named();
  const auto rows = PickSheet(*FlatPictures({DType::kU8, {9, 7}}), &named, 0);
  const std::string html = SheetHtml("a & b", *rows);
  size_t pictures = 0;
  for (size_t at = html.find("<img "); at != std::string::npos; at = html.find("<img ", at + 1))
    ++pictures;
  EXPECT_EQ(pictures, 22U);
  EXPECT_EQ(html.find("http"), std::string::npos);
  EXPECT_EQ(html.find("<ant>"), std::string::npos);
  EXPECT_NE(html.find("<h2>&lt;ant&gt;</h2>"), std::string::npos);
  EXPECT_NE(html.find("<h1>a &amp; b</h1>"), std::string::npos);
}

TEST(ContactSheet, TheDrawingHasEachPictureInItsPlace) {
  const Preprocessing named = Named();
  auto rows = *PickSheet(*FlatPictures({DType::kU8, {8, 8}}), &named, 0);
  RgbPicture sheet = DrawSheet(rows);
  constexpr int64_t kStep = kSheetSide + 6;
  EXPECT_EQ(sheet.size.height, 3 * kStep + 6);
  for (int64_t r = 0; r < 3; ++r) {
    const int64_t y = 6 + r * kStep + kSheetSide / 2, x = sheet.size.width - 10 * kStep + 10;
    EXPECT_EQ(*sheet.At(y, x), 10 * r + 5);
  }
  EXPECT_EQ(*sheet.At(6 + 2 * kStep + 1, sheet.size.width - 20), 255) << "no third picture";
}

TEST(SheetLetters, StayWithinThePicture) {
  RgbPicture small = RgbPicture::Filled({5, 9}, 255);
  DrawText(Drawable("W\xE4\xB8\xADg\n"), -3, -4, small);
  EXPECT_EQ(Drawable("W\xE4\xB8\xADg\n"), "W?g?");
  EXPECT_LT(*std::min_element(small.pixels.begin(), small.pixels.end()), 255);
}

}  // namespace
}  // namespace ridge
