#include "ridge/data/map.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ridge/data/picture_options.h"
#include "ridge/data/synthetic.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

TensorType Type(DType dtype, Dims dims) { return TensorType{dtype, std::move(dims)}; }

// The sample `values` of `from`, converted.
std::vector<double> Converted(const TensorType& from, const std::vector<double>& values,
                              const TensorType& to) {
  Tensor source(from);
  Tensor target(to);
  ConvertFromDouble(from.dtype, values.data(), source.mutable_data(), from.elements());
  const auto conversion = PlanConversion(from, to);
  EXPECT_TRUE(conversion.ok()) << conversion.status().message();
  if (!conversion.ok()) return {};
  Convert(*conversion, source.data(), target.mutable_data());
  std::vector<double> result;
  for (int64_t i = 0; i < to.elements(); ++i) result.push_back(target.at(i));
  return result;
}

using Doubles = std::vector<double>;

TEST(Convert, DividesPixelsBy255ExactlyAsNumpyDoes) {
  for (int64_t count : {2, 31, 32, 33, 784}) {
    Doubles pixels;
    Doubles expected;
    for (int64_t i = 0; i < count; ++i) {
      pixels.push_back(static_cast<double>(i % 256));
      expected.push_back(static_cast<float>(i % 256) / 255.0F);
    }
    EXPECT_EQ(Converted(Type(DType::kU8, {count}), pixels, Type(DType::kF32, {1, count})),
              expected);
  }
}

TEST(Convert, DividesPixelsForEveryFloat) {
  for (DType dtype : {DType::kF64, DType::kF16, DType::kBF16}) {
    const auto values = Converted(Type(DType::kU8, {3}), {0, 51, 255}, Type(dtype, {3}));
    EXPECT_EQ(values[0], 0);
    EXPECT_NEAR(values[1], 0.2, 0.001);
    EXPECT_EQ(values[2], 1);
  }
}

TEST(Convert, PlanesOfAPictureHaveTheSameQuotients) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 3 * 256; ++i) pixels.push_back(static_cast<uint8_t>(i / 3));
  std::vector<float> planes(3 * 256);
  Convert(*PlanConversion(Type(DType::kU8, {16, 16, 3}), Type(DType::kF32, {3, 16, 16})),
          pixels.data(), planes.data());
  for (size_t i = 0; i < planes.size(); ++i)
    EXPECT_EQ(planes[i], static_cast<float>(i % 256) / 255.0F) << i;
}

// torchvision 0.29: normalize(to_tensor(x), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)).
TEST(Convert, NormalizesChannelsAsTorchvisionDoes) {
  const uint8_t pixels[] = {0, 1, 2, 127, 128, 200, 254, 255, 3, 17, 99, 54};  // [2,2,3]
  const std::vector<float> expected = {-2.11790395F, 0.0569397435F, 2.23178339F,  -1.82678318F,
                                       -2.01820731F, 0.205182195F,  2.42857146F,  -0.302520961F,
                                       -1.76958609F, 1.68139446F,   -1.75215685F, -0.863267958F};
  const PixelNormalization imagenet = *ParseNormalization("imagenet");
  const TensorType from = Type(DType::kU8, {2, 2, 3});
  std::vector<float> planes(12), rows(12);
  Convert(*PlanConversion(from, Type(DType::kF32, {3, 2, 2}), imagenet), pixels, planes.data());
  EXPECT_EQ(planes, expected);
  Convert(*PlanConversion(from, Type(DType::kF32, {2, 2, 3}), imagenet), pixels, rows.data());
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(rows[i], expected[i % 3 * 4 + i / 3]) << i;
}

TEST(Convert, NormalizesForEveryFloatAndLength) {
  const PixelNormalization imagenet = *ParseNormalization("imagenet");
  const int64_t side = 23;  // more than one block
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < side * side * 3; ++i) pixels.push_back(static_cast<uint8_t>(i * 7));
  const TensorType from = Type(DType::kU8, {side, side, 3});
  for (const Dims& dims : {Dims{3, side, side}, Dims{side, side, 3}, Dims{side * side * 3}}) {
    Tensor expected(Type(DType::kF32, dims));
    Convert(*PlanConversion(from, expected.type(), imagenet), pixels.data(),
            expected.mutable_data());
    for (DType dtype : {DType::kF64, DType::kF16, DType::kBF16}) {
      Tensor other(Type(dtype, dims)), rounded(Type(dtype, {1}));
      Convert(*PlanConversion(from, other.type(), imagenet), pixels.data(), other.mutable_data());
      for (int64_t i = 0; i < other.type().elements(); ++i) {
        const double value = expected.at(i);
        ConvertFromDouble(dtype, &value, rounded.mutable_data(), 1);
        ASSERT_EQ(other.at(i), rounded.at(0)) << DTypeName(dtype) << " " << i;
      }
    }
  }
}

// What a step would cast is the same when it comes in 16 bits.
TEST(Convert, SixteenBitsAreTheCastOfTheF32Input) {
  struct Case {
    TensorType from;
    Dims to;
    const char* normalization;
  };
  const Case cases[] = {{Type(DType::kU8, {257}), {257}, ""},
                        {Type(DType::kU8, {}), {}, ""},
                        {Type(DType::kU8, {9, 31, 3}), {3, 9, 31}, ""},
                        {Type(DType::kU8, {9, 31, 3}), {9, 31, 3}, "imagenet"},
                        {Type(DType::kU8, {9, 31, 3}), {3, 9, 31}, "imagenet"},
                        {Type(DType::kF32, {1027}), {1027}, ""},
                        {Type(DType::kF32, {9, 31, 3}), {3, 9, 31}, ""},
                        {Type(DType::kF64, {300}), {300}, ""},
                        {Type(DType::kI64, {300}), {300}, ""}};
  for (const Case& of : cases) {
    PixelNormalization normalization;
    if (*of.normalization != 0) normalization = *ParseNormalization(of.normalization);
    Tensor from(of.from), f32(Type(DType::kF32, of.to));
    for (int64_t i = 0; i < of.from.elements(); ++i) {
      const double value = IsFloat(of.from.dtype)
                               ? std::ldexp(0.1 * static_cast<double>(i % 13 - 6) + 1e-9,
                                            static_cast<int>(i % 40) - 24)
                               : static_cast<double>(i % 256);
      StoreFromDouble(of.from.dtype, from.mutable_data(), i, value);
    }
    Convert(*PlanConversion(of.from, f32.type(), normalization), from.data(), f32.mutable_data());
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      Tensor reduced(Type(dtype, of.to)), cast(Type(dtype, of.to));
      Convert(*PlanConversion(of.from, reduced.type(), normalization), from.data(),
              reduced.mutable_data());
      for (int64_t i = 0; i < f32.type().elements(); ++i)
        StoreFromDouble(dtype, cast.mutable_data(), i, f32.at(i));
      EXPECT_EQ(std::memcmp(reduced.data(), cast.data(), static_cast<size_t>(cast.bytes())), 0)
          << TypeToString(of.from) << " to " << TypeToString(reduced.type()) << of.normalization;
    }
  }
}

TEST(Convert, OneMeanIsThatOfAllChannels) {
  const uint8_t pixels[] = {0, 255, 51};
  std::vector<float> out(3);
  Convert(*PlanConversion(Type(DType::kU8, {1, 1, 3}), Type(DType::kF32, {3, 1, 1}),
                          *ParseNormalization("0.5")),
          pixels, out.data());
  EXPECT_EQ(out, (std::vector<float>{-1, 1, (51.0F / 255.0F - 0.5F) / 0.5F}));
}

TEST(Convert, NormalizesPixelsOfAsManyChannelsAsThereAreMeans) {
  const PixelNormalization imagenet = *ParseNormalization("imagenet");
  EXPECT_EQ(Message(PlanConversion(Type(DType::kU8, {2, 2}), Type(DType::kF32, {2, 2}), imagenet)),
            "is normalized by 3 means, it has 1 channels");
  EXPECT_EQ(Message(PlanConversion(Type(DType::kU8, {4}), Type(DType::kI64, {4}), imagenet)),
            "pixels are normalized from u8 to floats");
}

TEST(Convert, LeavesAScalarU8ANumber) {
  EXPECT_EQ(Converted(Type(DType::kU8, {}), {9}, Type(DType::kI64, {})), (Doubles{9}));
  EXPECT_EQ(Converted(Type(DType::kU8, {}), {9}, Type(DType::kF32, {1})), (Doubles{9}));
}

TEST(Convert, CastsOtherTypesPlainly) {
  EXPECT_EQ(Converted(Type(DType::kF64, {2}), {1.5, -2}, Type(DType::kF32, {2})),
            (Doubles{1.5, -2}));
  EXPECT_EQ(Converted(Type(DType::kI32, {2}), {7, -2}, Type(DType::kI64, {2})), (Doubles{7, -2}));
  EXPECT_EQ(Converted(Type(DType::kI64, {2}), {300, -2}, Type(DType::kU8, {2})), (Doubles{255, 0}));
  EXPECT_EQ(Converted(Type(DType::kF32, {2}), {1.7, -1.7}, Type(DType::kI32, {2})),
            (Doubles{1, -1}));
  EXPECT_EQ(Converted(Type(DType::kU8, {2}), {0, 3}, Type(DType::kBool, {2})), (Doubles{0, 1}));
  const Doubles many(1000, 3);
  EXPECT_EQ(Converted(Type(DType::kI32, {1000}), many, Type(DType::kF32, {1000})), many);
}

TEST(Convert, KeepsI64BeyondWhatADoubleHolds) {
  const int64_t value = std::numeric_limits<int64_t>::max() - 1;
  int64_t copy = 0;
  Convert(*PlanConversion(Type(DType::kI64, {}), Type(DType::kI64, {1})), &value, &copy);
  EXPECT_EQ(copy, value);
}

TEST(Convert, TurnsChannelsLastIntoChannelsFirst) {
  const Doubles hwc{0, 51, 102, 1, 52, 103};  // one row of two pixels, three channels
  EXPECT_EQ(Converted(Type(DType::kU8, {1, 2, 3}), hwc, Type(DType::kU8, {3, 1, 2})),
            (Doubles{0, 1, 51, 52, 102, 103}));
  const auto floats = Converted(Type(DType::kU8, {1, 2, 3}), hwc, Type(DType::kF32, {3, 1, 2}));
  EXPECT_EQ(floats[2], 51.0F / 255.0F);
  EXPECT_EQ(Converted(Type(DType::kF32, {1, 2, 3}), hwc, Type(DType::kF64, {3, 1, 2})),
            (Doubles{0, 1, 51, 52, 102, 103}));
}

TEST(Convert, TurnsLargeImages) {
  const int64_t height = 19;
  const int64_t width = 31;
  Doubles hwc;
  for (int64_t i = 0; i < height * width * 3; ++i) hwc.push_back(static_cast<double>(i));
  const auto chw =
      Converted(Type(DType::kI32, {height, width, 3}), hwc, Type(DType::kI64, {3, height, width}));
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t p = 0; p < height * width; ++p)
      ASSERT_EQ(chw[static_cast<size_t>(c * height * width + p)], static_cast<double>(p * 3 + c));
  }
}

// Clips [N,H,W,C] as [C,N,H,W] and [N,C,H,W]; the inner blocks are longer than a run.
TEST(Convert, MovesTheChannelsOfClips) {
  const int64_t frames = 5, height = 19, width = 31, pixels = height * width;
  const TensorType from = Type(DType::kU8, {frames, height, width, 3});
  Doubles clip;
  for (int64_t i = 0; i < from.elements(); ++i) clip.push_back(static_cast<double>(i * 7 % 256));
  const PixelNormalization imagenet = *ParseNormalization("imagenet");
  for (const bool channels_first : {true, false}) {
    const Dims dims =
        channels_first ? Dims{3, frames, height, width} : Dims{frames, 3, height, width};
    Doubles moved(clip.size());
    for (int64_t i = 0; i < from.elements(); ++i) {
      const int64_t frame = i / 3 / pixels, pixel = i / 3 % pixels, c = i % 3;
      const int64_t plane = channels_first ? c * frames + frame : frame * 3 + c;
      moved[static_cast<size_t>(plane * pixels + pixel)] = clip[static_cast<size_t>(i)];
    }
    EXPECT_EQ(Converted(from, clip, Type(DType::kU8, dims)), moved);
    EXPECT_EQ(Converted(from, clip, Type(DType::kI32, dims)), moved);
    const Doubles floats = Converted(from, clip, Type(DType::kF32, dims));
    std::vector<uint8_t> bytes(clip.begin(), clip.end());
    std::vector<float> normalized(bytes.size());
    Convert(*PlanConversion(from, Type(DType::kF32, dims), imagenet), bytes.data(),
            normalized.data());
    for (size_t i = 0; i < moved.size(); ++i) {
      const auto c = static_cast<int64_t>(i) / pixels / (channels_first ? frames : 1) % 3;
      const float x = static_cast<float>(moved[i]) / 255.0F;
      const auto mean = static_cast<float>(imagenet.mean[static_cast<size_t>(c)]);
      const auto std = static_cast<float>(imagenet.std[static_cast<size_t>(c)]);
      ASSERT_EQ(floats[i], x) << i;
      ASSERT_EQ(normalized[i], (x - mean) / std) << i;
    }
  }
}

TEST(Convert, RefusesClipsWhoseFramesMayBeTheirChannels) {
  const TensorType from = Type(DType::kU8, {3, 8, 9, 3});
  EXPECT_EQ(Message(PlanConversion(from, Type(DType::kF32, {3, 3, 8, 9}))),
            "[3,8,9,3] becomes [3,3,8,9] in two ways: 3 frames of 3 channels");
  EXPECT_EQ(Message(PlanConversion(from, Type(DType::kF32, {8, 3, 3, 9}))),
            "[3,8,9,3] cannot become [8,3,3,9]");
}

TEST(Convert, LeavesImagesOfTheSameShapeAlone) {
  const Doubles values{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Converted(Type(DType::kI32, {2, 2, 2}), values, Type(DType::kI64, {2, 2, 2})), values);
  const Doubles grey{0, 1, 2, 3};
  EXPECT_EQ(Converted(Type(DType::kI32, {2, 2, 1}), grey, Type(DType::kI64, {1, 2, 2})), grey);
}

TEST(Convert, ReadsSamplesAtAnyAlignment) {
  std::vector<char> bytes(1 + 3 * sizeof(double));
  const double values[3] = {1, 2, 3};
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  float out[3];
  Convert(*PlanConversion(Type(DType::kF64, {3}), Type(DType::kF32, {3})), bytes.data() + 1, out);
  EXPECT_EQ(out[2], 3);
}

TEST(Convert, RefusesShapesThatOnlyHaveTheSameSize) {
  EXPECT_EQ(Message(PlanConversion(Type(DType::kF32, {2, 6}), Type(DType::kF32, {3, 4}))),
            "[2,6] cannot become [3,4]");
  EXPECT_EQ(Message(PlanConversion(Type(DType::kF32, {2, 6}), Type(DType::kF32, {13}))),
            "12 elements, 13 are needed");
  EXPECT_TRUE(PlanConversion(Type(DType::kF32, {2, 6}), Type(DType::kF32, {12})).ok());
  EXPECT_TRUE(PlanConversion(Type(DType::kF32, {12}), Type(DType::kF32, {1, 3, 4})).ok());
  EXPECT_TRUE(PlanConversion(Type(DType::kU8, {28, 28}), Type(DType::kF32, {1, 28, 28})).ok());
}

class MatchTest : public testing::Test {
 protected:
  // A source of one sample with these fields.
  SourcePtr Fields(const std::vector<Field>& fields) {
    return std::make_shared<SyntheticSource>("made", fields, 1, 0);
  }
  // The fields' names in the order of the inputs, or the message.
  std::string Match(const std::vector<InputSpec>& inputs, const SourcePtr& source) {
    const auto maps = MatchFields(BatchSpec{inputs}, *source);
    if (!maps.ok()) return maps.status().message();
    std::string names;
    for (const FieldMap& map : *maps)
      names += (names.empty() ? "" : " ") + source->fields()[static_cast<size_t>(map.field)].name;
    return names;
  }

  const TensorType image_ = Type(DType::kF32, {1, 28, 28});
  const TensorType label_ = Type(DType::kI64, {});
  const Field u8_image_{"image", {DType::kU8, {28, 28}}};
  const Field u8_label_{"label", {DType::kU8, {}}};
};

TEST_F(MatchTest, TakesTheSameNameFirst) {
  const SourcePtr source = Fields({{"x", image_}, u8_image_, u8_label_});
  EXPECT_EQ(Match({{"image", image_}, {"label", label_}}, source), "image label");
  EXPECT_EQ(Match({{"x", image_}, {"label", label_}}, source), "x label");
}

TEST_F(MatchTest, TakesTheFieldThatTheUserNamed) {
  const SourcePtr source = Fields({{"x", image_}, u8_image_, u8_label_});
  EXPECT_EQ(Match({{"image", image_, "x"}, {"label", label_}}, source), "x label");
  EXPECT_EQ(Match({{"image", image_, "z"}}, source),
            "made: its fields cannot fill the model's inputs:\n"
            "  input               field\n"
            "  image f32[1,28,28]  -      there is no field 'z'\n"
            "  the data's fields: x f32[1,28,28] image u8[28,28] label u8[]");
}

TEST_F(MatchTest, KnowsTheUsualNames) {
  for (const std::string x : {"image", "images", "x", "input", "inputs", "data", "features"}) {
    for (const std::string y : {"label", "labels", "y", "target", "targets"}) {
      EXPECT_EQ(Match({{x, image_}, {y, label_}}, Fields({u8_image_, u8_label_})), "image label");
      EXPECT_EQ(Match({{"image", image_}, {"label", label_}}, Fields({{x, image_}, {y, label_}})),
                x + " " + y);
    }
  }
}

TEST_F(MatchTest, FindsByTypeWhenOnlyOneFits) {
  EXPECT_EQ(Match({{"Input3", image_}, {"gold", label_}}, Fields({u8_label_, u8_image_})),
            "image label");
}

TEST_F(MatchTest, DoesNotGuessBetweenTwo) {
  const SourcePtr source = Fields({{"left", image_}, {"right", image_}});
  EXPECT_EQ(Match({{"a", image_}}, source),
            "made: its fields cannot fill the model's inputs:\n"
            "  input           field\n"
            "  a f32[1,28,28]  -      no field of this name or, alone, of this type\n"
            "  the data's fields: left f32[1,28,28] right f32[1,28,28]");
  EXPECT_NE(Match({{"a", image_}, {"b", image_}}, Fields({{"left", image_}})), "left left");
}

TEST_F(MatchTest, ShowsInputsAgainstFields) {
  EXPECT_EQ(Match({{"image", Type(DType::kF32, {3, 32, 32})}, {"label", label_}},
                  Fields({u8_image_, u8_label_})),
            "made: its fields cannot fill the model's inputs:\n"
            "  input               field\n"
            "  image f32[3,32,32]  image u8[28,28]  784 elements, 3072 are needed\n"
            "  label i64[]         label u8[]       ok\n"
            "  the data's fields: image u8[28,28] label u8[]");
}

TEST(MapSource, GivesTheModelsInputs) {
  const BatchSpec spec{{{"input", Type(DType::kF32, {4})}, {"label", Type(DType::kI64, {})}}};
  const SourcePtr source = CountingSource(10);
  const SourcePtr mapped = *MapSource::Create(source, spec);
  float pixels[4];
  int64_t label = 0;
  ASSERT_TRUE(mapped->ReadOne(9, 0, pixels).ok());
  ASSERT_TRUE(mapped->ReadOne(9, 1, &label).ok());
  EXPECT_EQ(pixels[3], 39.0F / 255.0F);
  EXPECT_EQ(label, 9);
  EXPECT_EQ(mapped->fields()[1], (Field{"label", Type(DType::kI64, {}), 10}));
  EXPECT_EQ(mapped->resident_bytes(), source->resident_bytes());
}

TEST(MapSource, ConvertsFromSourcesThatHoldNothing) {
  const Field field{"x", Type(DType::kU8, {3})};
  const SourcePtr made = std::make_shared<SyntheticSource>("made", std::vector<Field>{field}, 5, 0);
  const SourcePtr mapped = *MapSource::Create(made, {{{"x", Type(DType::kF32, {3})}}});
  uint8_t raw[3];
  float converted[3];
  ASSERT_TRUE(made->ReadOne(4, 0, raw).ok());
  ASSERT_TRUE(mapped->ReadOne(4, 0, converted).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(converted[i], static_cast<float>(raw[i]) / 255.0F);
}

}  // namespace
}  // namespace ridge
