// The golden cases are torchvision's for Pillow's pictures: tests/golden/make_transforms.py.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "ridge/core/sha256.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/image/transforms/augmentation.h"
#include "ridge/data/image/transforms/color.h"
#include "ridge/data/image/transforms/filters.h"
#include "ridge/data/image/transforms/rand_augment.h"

namespace ridge {
namespace {

using Pixels = std::vector<uint8_t>;
using Numbers = std::vector<double>;

// The picture that make_pictures.py calls source().
Pixels Source(const PictureShape& shape) {
  Pixels pixels;
  for (int64_t i = 0; i < shape.bytes(); ++i) {
    const int64_t noise = static_cast<uint32_t>(i * 2654435761) >> 26;
    const int64_t pixel = i / shape.channels;
    pixels.push_back(static_cast<uint8_t>(noise + pixel % shape.width * 4 +
                                          pixel / shape.width * 3 + i % shape.channels * 85));
  }
  return pixels;
}

std::string Sha(const Pixels& pixels) {
  Sha256 hash;
  hash.Add(pixels.data(), static_cast<int64_t>(pixels.size()));
  return hash.Hex();
}

struct Case {
  std::string name;
  PictureShape shape;
  Numbers numbers;
  std::string result;
};

std::vector<Case> Cases() {
  std::ifstream file(std::string(std::getenv("RIDGE_SOURCE_DIR")) +
                     "/tests/golden/pictures/transforms.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Case read;
    words >> read.name >> read.shape.width >> read.shape.height >> read.shape.channels;
    std::vector<std::string> rest;
    for (std::string word; words >> word;) rest.push_back(word);
    for (size_t i = 0; i + 1 < rest.size(); ++i) read.numbers.push_back(std::stod(rest[i]));
    read.result = rest.back();
    cases.push_back(read);
  }
  return cases;
}

class Golden {
 public:
  explicit Golden(const Case& golden)
      : shape_(golden.shape), n_(golden.numbers), pixels_(Source(shape_)), scratch_(1 << 16) {}

  Pixels Run(const std::string& name) {
    if (name == "operation") Operation();
    if (name == "box") return Box();
    uint8_t* p = pixels_.data();
    if (name == "flip") FlipLeftRight(shape_, p);
    if (name == "vflip") FlipTopBottom(shape_, p);
    if (name == "grey") MakeGrey(shape_, p);
    if (name == "brightness") AdjustBrightness(shape_, n_[0], p);
    if (name == "contrast") AdjustContrast(shape_, n_[0], p);
    if (name == "saturation") AdjustSaturation(shape_, n_[0], p);
    if (name == "hue") AdjustHue(shape_, n_[0], p);
    if (name == "sharpness") AdjustSharpness(shape_, n_[0], scratch_, p);
    if (name == "rotate") Rotate(shape_, n_[0], scratch_, p);
    if (name == "crop") Shift(shape_, Whole(1) - Whole(0), Whole(2) - Whole(0), scratch_, p);
    if (name == "blur") Blur(shape_, Whole(0), n_[1], scratch_, p);
    if (name == "erase") {
      shape_.erased = {10, 120, 250};
      Erase(shape_, {Whole(0), Whole(1), Whole(2), Whole(3)}, p);
    }
    return pixels_;
  }

 private:
  int64_t Whole(size_t i) const { return static_cast<int64_t>(n_[i]); }

  void Operation() {
    ApplyRandOperation(shape_, static_cast<RandOperation>(Whole(0)), static_cast<int>(Whole(1)),
                       Whole(2) != 0, scratch_, pixels_.data());
  }

  Pixels Box() {
    ResizeCall call = FitPicture({Whole(2), Whole(3)}, {Whole(4), Whole(5)}, ImageFit::kStretch,
                                 ResizeFilter::kBilinear, shape_.channels);
    call.stride = shape_.width * shape_.channels;
    Pixels out(static_cast<size_t>(Whole(4) * Whole(5) * shape_.channels));
    pixels_.resize(pixels_.size() + kResizeSlackBytes, 0xAA);
    std::vector<char> scratch(static_cast<size_t>(ResizeScratchBytes(call)));
    Resize(call, pixels_.data() + Whole(0) * call.stride + Whole(1) * shape_.channels, scratch,
           out.data());
    return out;
  }

  PictureShape shape_;
  const Numbers n_;
  Pixels pixels_;
  std::vector<char> scratch_;
};

TEST(PictureTransforms, HaveTorchvisionsBytes) {
  std::set<std::string> names;
  for (const Case& golden : Cases()) {
    if (golden.name == "blur") continue;
    names.insert(golden.name);
    std::ostringstream label;
    label << golden.name << " " << golden.shape.width << "x" << golden.shape.height;
    for (const double number : golden.numbers) label << " " << number;
    EXPECT_EQ(Sha(Golden(golden).Run(golden.name)), golden.result) << label.str();
  }
  EXPECT_EQ(names.size(), 13U);
}

TEST(PictureTransforms, BlurIsWithinALevelOfTorchvisions) {
  int cases = 0;
  for (const Case& golden : Cases()) {
    if (golden.name != "blur") continue;
    ++cases;
    const Pixels blurred = Golden(golden).Run("blur");
    ASSERT_EQ(golden.result.size(), 2 * blurred.size());
    for (size_t i = 0; i < blurred.size(); ++i)
      EXPECT_NEAR(blurred[i], std::stoi(golden.result.substr(2 * i, 2), nullptr, 16), 1) << i;
  }
  EXPECT_EQ(cases, 8);
}

// ---- what is drawn

RandomKey Key(uint64_t seed, uint32_t epoch) { return {seed, StableHash("test"), epoch}; }

TEST(TransformDraws, DependOnSeedEpochAndSample) {
  const auto first = [](uint64_t seed, uint32_t epoch, int64_t sample) {
    return TransformDraws(Key(seed, epoch), sample).Word();
  };
  const std::set<uint32_t> words = {first(1, 0, 0), first(2, 0, 0), first(1, 1, 0), first(1, 0, 1),
                                    first(1, 0, int64_t{1} << 32)};
  EXPECT_EQ(words.size(), 5U);
  EXPECT_EQ(first(1, 0, 0), first(1, 0, 0));
}

TEST(TransformDraws, AreUniform) {
  TransformDraws draws(Key(1, 0), 0);
  std::array<int, 5> counts{};
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    ++counts[static_cast<size_t>(draws.Below(5))];
    const double x = draws.Uniform(-3, 5);
    EXPECT_TRUE(x >= -3 && x < 5);
    sum += x;
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 200);
  EXPECT_NEAR(sum / 10000, 1, 0.1);
}

TEST(DrawCrop, LiesInsideAndHasTheAreaAndRatioAskedFor) {
  CropDraw crop{0.3, 0.6, Key(1, 0), 0};
  std::set<int64_t> lefts;
  for (crop.sample = 0; crop.sample < 500; ++crop.sample) {
    const PictureBox box = DrawCrop(crop, 375, 500);
    EXPECT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.height <= 375 &&
                box.left + box.width <= 500);
    const auto height = static_cast<double>(box.height), width = static_cast<double>(box.width);
    EXPECT_NEAR(width * height / (375 * 500), 0.45, 0.16);
    EXPECT_TRUE(width / height > 0.74 && width / height < 1.35);
    lefts.insert(box.left);
  }
  EXPECT_GT(lefts.size(), 50U);
}

TEST(DrawCrop, OfAThinPictureIsItsMiddle) {
  const CropDraw crop{1, 1, Key(1, 0), 0};
  EXPECT_EQ(DrawCrop(crop, 1000, 4), (PictureBox{497, 0, 5, 4}));
  EXPECT_EQ(DrawCrop(crop, 3, 1000), (PictureBox{0, 498, 3, 4}));
  EXPECT_EQ(DrawCrop(crop, 1, 1), (PictureBox{0, 0, 1, 1}));
}

TEST(DrawErased, LiesInside) {
  TransformDraws draws(Key(1, 0), 0);
  int drawn = 0;
  for (int i = 0; i < 500; ++i) {
    const PictureBox box = DrawErased(draws, 40, 30);
    EXPECT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.height <= 40 &&
                box.left + box.width <= 30);
    drawn += box.height > 0 ? 1 : 0;
  }
  EXPECT_GT(drawn, 490);
  EXPECT_EQ(DrawErased(draws, 1, 1), PictureBox());
}

TEST(ResizeScratch, OfABoxIsNotMoreThanThatOfThePicture) {
  for (const ImageSize from : {ImageSize{375, 500}, {30, 1000}, {1000, 30}, {9, 9}, {224, 224}}) {
    for (const ImageSize to : {ImageSize{224, 224}, {8, 8}, {32, 500}}) {
      for (const int channels : {1, 3}) {
        const auto call = [&](const ImageSize& box) {
          return FitPicture(box, to, ImageFit::kStretch, ResizeFilter::kBilinear, channels);
        };
        const int64_t most = MostResizeScratchBytes(call(from));
        EXPECT_LE(ResizeScratchBytes(call(from)), most);
        TransformDraws draws(Key(1, 0), 0);
        for (int i = 0; i < 300; ++i) {
          const ImageSize box{draws.Below(from.height) + 1, draws.Below(from.width) + 1};
          EXPECT_LE(ResizeScratchBytes(call(box)), most) << box.height << "x" << box.width;
        }
      }
    }
  }
}

// ---- stages

const PictureShape kShape{20, 24, 3};

Pixels Augmented(const std::string& text, int64_t epoch, int64_t sample, uint64_t seed = 7) {
  const auto augmentation = Augmentation::Parse(text, seed);
  EXPECT_TRUE(augmentation.ok()) << augmentation.status().message();
  Pixels pixels = Source(kShape);
  std::vector<char> scratch(static_cast<size_t>(augmentation->scratch_bytes(kShape)));
  augmentation->Apply(kShape, epoch, sample, scratch, pixels.data());
  return pixels;
}

std::string Reason(const std::string& text) {
  const auto parsed = Augmentation::Parse(text, 0);
  return parsed.ok() ? "ok" : parsed.status().message();
}

TEST(Augmentation, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Reason("flop").substr(0, 32), "'flop' is none of rrc[:LEAST[:MO");
  EXPECT_TRUE(Reason("").starts_with("'' is none of ")) << Reason("");
  EXPECT_EQ(Reason("crop"), "crop has 0 numbers; its form is crop:PIXELS");
  EXPECT_EQ(Reason("flip:0.1:2"), "flip has 2 numbers; its form is flip[:P]");
  EXPECT_EQ(Reason("crop:1.5"), "'1.5' in crop:PIXELS must be a whole number from 0 to 16384");
  EXPECT_EQ(Reason("flip:nan"), "'nan' in flip[:P] must be a number from 0 to 1");
  EXPECT_EQ(Reason("flip:1x"), "'1x' in flip[:P] must be a number from 0 to 1");
  EXPECT_EQ(Reason("flip,rrc"), "rrc must come first");
  EXPECT_EQ(Reason("rrc:0.2,flip,crop:4,jitter:0.4:0.4:0.4:0.1,grey,blur,erase,randaugment:3:12"),
            "ok");
}

// Each row of the table changes something, differs between samples and epochs, and repeats itself.
TEST(Augmentation, EveryTransformIsAFunctionOfSeedEpochAndSample) {
  for (const PictureTransform& transform : PictureTransforms()) {
    if (transform.apply == nullptr) continue;
    std::string text = transform.name;
    if (transform.required > 0) text += ":0.4";
    if (text == "crop:0.4") text = "crop:4";
    if (text == "rotate:0.4") text = "rotate:30";
    std::set<std::string> by_sample, by_epoch, by_seed;
    for (int64_t i = 0; i < 64; ++i) {
      by_sample.insert(Sha(Augmented(text, 0, i)));
      by_epoch.insert(Sha(Augmented(text, i, 0)));
      by_seed.insert(Sha(Augmented(text, 0, 0, static_cast<uint64_t>(i))));
    }
    EXPECT_GE(by_sample.size(), 2U) << text;
    EXPECT_GE(by_epoch.size(), 2U) << text;
    EXPECT_GE(by_seed.size(), 2U) << text;
    EXPECT_EQ(Augmented(text, 3, 5), Augmented(text, 3, 5)) << text;
  }
}

TEST(Augmentation, AFurtherStageChangesNothingOfTheOthers) {
  for (int64_t sample = 0; sample < 20; ++sample)
    EXPECT_EQ(Augmented("flip", 0, sample), Augmented("crop:0,flip", 0, sample));
}

TEST(Augmentation, AStageThatComesTwiceDrawsTwice) {
  int twice = 0;
  for (int64_t sample = 0; sample < 64; ++sample)
    twice += Augmented("flip,flip", 0, sample) == Source(kShape) ? 1 : 0;
  EXPECT_TRUE(twice > 16 && twice < 48) << twice;  // always if both were one draw
}

TEST(Augmentation, ProbabilityIsHowOften) {
  int flipped = 0;
  for (int64_t sample = 0; sample < 400; ++sample)
    flipped += Augmented("flip:0.25", 0, sample) != Source(kShape) ? 1 : 0;
  EXPECT_NEAR(flipped, 100, 30);
  EXPECT_EQ(Augmented("flip:0,vflip:0,grey:0,erase:0,crop:0,jitter:0", 0, 0), Source(kShape));
}

}  // namespace
}  // namespace ridge
