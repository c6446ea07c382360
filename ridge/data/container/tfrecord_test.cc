#include "ridge/data/container/tfrecord.h"

#include <set>

#include "ridge/data/container/test_containers.h"

namespace ridge {
namespace {

std::string Simple(int64_t label, std::vector<float> x = {1, 2}) {
  return Example({{"label", Int64Feature({label})}, {"x", FloatFeature(std::move(x))}});
}

class TfRecordTest : public ContainerTest {
 protected:
  Result<DataSplits> OpenFile(const std::string& bytes, const std::string& options = "",
                              double hold_out = 0) {
    Put("a.tfrecord", bytes);
    return Open("tfrecord", "a.tfrecord" + options, hold_out);
  }
  std::string Error(const std::string& bytes, const std::string& options = "") {
    return Plain(Message(OpenFile(bytes, options)));
  }
  SourcePtr Train(const std::string& bytes, const std::string& options = "") {
    const auto splits = OpenFile(bytes, options);
    EXPECT_TRUE(splits.ok()) << splits.status().message();
    return splits.ok() ? splits->train : nullptr;
  }
  // What reading the first sample's label says.
  std::string ReadError(const Source& source) {
    std::vector<char> out(1 << 12);
    return Plain(source.ReadOne(0, source.FindField("label"), out.data()).message());
  }
};

TEST_F(TfRecordTest, FeaturesOfOneLengthAreFields) {
  const auto example = [](int64_t label, const std::string& tags) {
    return Example({{"raw", BytesFeature(std::string("\0\xFF\7", 3))},
                    {"image/class/label", Int64Feature({label})},
                    {"ids", Int64Feature({-1, INT64_MIN, label})},
                    {"format", BytesFeature("JPEG")},
                    {"scale", FloatFeature({0.5F})},
                    {"tags", Part(1, tags)}});
  };
  const auto splits = OpenFile(RecordsOf({example(3, Part(1, "a")), example(4, "")}));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& source = *splits->train;
  EXPECT_EQ(FieldTexts(source), "ids i64[3], label i64[], raw u8[3], scale f32[]");
  EXPECT_EQ(LabelsOf(source), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(ReadAs<int64_t>(source, 1, "ids"), (std::vector<int64_t>{-1, INT64_MIN, 4}));
  EXPECT_EQ(ReadAs<uint8_t>(source, 0, "raw"), (std::vector<uint8_t>{0, 255, 7}));
  EXPECT_EQ(ReadAs<float>(source, 0, "scale"), std::vector<float>{0.5F});
  EXPECT_EQ(source.fields()[1].classes, 5);
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"classes", 5}}));
  ASSERT_EQ(splits->notes.size(), 1);
  EXPECT_EQ(Plain(splits->notes[0]),
            "tfrecord:DIR/a.tfrecord: features left out, for they are text or of several lengths: "
            "format, tags");
}

TEST_F(TfRecordTest, PackedAndSingleValuesAreTheSame) {
  const float halves[] = {0.5F, 1.5F};
  const std::string single_floats =
      Part(2, "\x0D" + Raw(&halves[0], 4) + "\x0D" + Raw(&halves[1], 4));
  const std::string single_ints = Part(3, "\x08" + Varint(300) + "\x08" + Varint(2));
  const SourcePtr source = Train(
      RecordsOf({Example({{"f", single_floats}, {"i", single_ints}}),
                 Example({{"f", FloatFeature({0.5F, 1.5F})}, {"i", Int64Feature({300, 2})}})}));
  ASSERT_NE(source, nullptr);
  for (const int64_t i : {0, 1}) {
    EXPECT_EQ(ReadAs<float>(*source, i, "f"), (std::vector<float>{0.5F, 1.5F}));
    EXPECT_EQ(ReadAs<int64_t>(*source, i, "i"), (std::vector<int64_t>{300, 2}));
  }
}

TEST_F(TfRecordTest, TheLastOfEqualKeysWinsAndUnknownFieldsArePassedOver) {
  const std::string unknown = Part(9, "?") + "\x58\x05" +
                              "\x65"
                              "1234" +
                              "\x69"
                              "12345678";
  const std::string entry = Part(2, unknown + Int64Feature({7})) + unknown + Part(1, "label");
  const std::string example =
      unknown + Part(1, Part(1, Part(1, "label") + Part(2, Int64Feature({1}))) + Part(1, entry));
  const SourcePtr source = Train(RecordsOf({example}));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(LabelsOf(*source), std::vector<int64_t>{7});
}

TEST_F(TfRecordTest, PicturesAreThoseOfAnImageFolder) {
  const std::vector<std::string> files = {"420.jpg", "lossy.webp", "2-8.png"};
  std::vector<std::string> examples;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string bytes = GoldenFile("pictures/" + files[i]);
    Put("photos/a/" + std::to_string(i) + files[i].substr(files[i].rfind('.')), bytes);
    examples.push_back(Example(
        {{"image/encoded", BytesFeature(bytes)}, {"image/class/label", Int64Feature({1})}}));
  }
  const auto folder = Open("images", "photos");
  const auto splits = OpenFile(RecordsOf(examples));
  ASSERT_TRUE(folder.ok() && splits.ok()) << splits.status().message();
  EXPECT_EQ(FieldTexts(*splits->train), "label i64[], image u8[8,8,3]");
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadAs<uint8_t>(*splits->train, i, "image"),
              ReadAs<uint8_t>(*folder->train, i, "image"));
  }
}

TEST_F(TfRecordTest, RawPicturesHaveTheExtentsThatTheRecordsSay) {
  const auto example = [](int64_t height) {
    return Example({{"height", Int64Feature({height})},
                    {"width", Int64Feature({2})},
                    {"image_raw", BytesFeature(Counting(18))}});
  };
  EXPECT_EQ(FieldTexts(*Train(RecordsOf({example(3), example(3)}))),
            "height i64[], image u8[3,2,3], width i64[]");
  EXPECT_EQ(FieldTexts(*Train(RecordsOf({example(3), example(4)}))),
            "height i64[], image u8[18], width i64[]");
}

TEST_F(TfRecordTest, GzipIsHeldInMemoryAndReadsTheSame) {
  const std::string bytes = RecordsOf({Simple(1), Simple(2), Simple(0)});
  const auto splits = OpenFile(Gzip(bytes));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(LabelsOf(*splits->train), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_GE(splits->train->resident_bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_LT(Train(bytes)->resident_bytes(), 300);
}

TEST_F(TfRecordTest, ARecordWhoseLengthLooksLikeGzipIsPlain) {
  const std::string raw(
      0x088B1F - Example({{"raw", BytesFeature(std::string(500000, '\0'))}}).size() + 500000, '\0');
  const std::string bytes = RecordsOf({Example({{"raw", BytesFeature(raw)}})});
  ASSERT_EQ(bytes.substr(0, 3), "\x1F\x8B\x08");
  EXPECT_EQ(Train(bytes)->size(), 1);
}

TEST_F(TfRecordTest, ASchemaSaysTheFields) {
  const std::string example = Example({{"raw", BytesFeature(Counting(12))},
                                       {"text", BytesFeature("abcd")},
                                       {"y", Int64Feature({5})},
                                       {"z", FloatFeature({1})}});
  const SourcePtr source =
      Train(RecordsOf({example}), ",schema=raw:u8[2,2,3],text:i32,y:i64,size=8,label=y");
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(FieldTexts(*source), "raw u8[2,2,3], text i32[], label i64[]");
  EXPECT_EQ(ReadAs<int32_t>(*source, 0, "text")[0], 0x64636261);
  EXPECT_EQ(LabelsOf(*source), std::vector<int64_t>{5});
}

TEST_F(TfRecordTest, OptionsThatDoNotFitAreRefused) {
  const std::string bytes = RecordsOf({Simple(1)});
  const auto error = [&](const std::string& options) {
    const std::string text = Error(bytes, options);
    return text.substr(text.find("': ") + 3);
  };
  EXPECT_EQ(error(",schema=x:f32[2"),
            "schema has 'x:f32[2'; it must be NAME:TYPE such as label:i64, x:f32[4], raw:u8[28,28] "
            "or photo:image");
  EXPECT_EQ(error(",schema=x:i64[2]"),
            "schema says i64 of feature 'x', which is float in the records: f32");
  EXPECT_EQ(error(",schema=x:f32[2],w:i64"),
            "the first records have no feature 'w'; they have: label, x");
  EXPECT_EQ(error(",schema=x:f32[2],x:f32[2]"), "schema has 'x' twice");
  EXPECT_EQ(error(",label=w"), "label is 'w', which is none of the features: label, x");
  EXPECT_EQ(error(",classes=0"), "classes is '0'; it must be a number from 1 to 2147483648");
  EXPECT_EQ(error(",json=a"),
            "no option 'json' (it takes: schema, image, label, first-label, classes, size, fit, "
            "resize, normalize)");
}

TEST_F(TfRecordTest, LabelsCountFromTheFirst) {
  const std::string bytes = RecordsOf({Simple(1), Simple(3)});
  const SourcePtr source = Train(bytes, ",first-label=1");
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(LabelsOf(*source), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(source->fields()[0].classes, 3);
  EXPECT_EQ(Train(bytes, ",classes=9")->fields()[0].classes, 9);
  EXPECT_EQ(
      Error(bytes, ",first-label=2"),
      "tfrecord:DIR/a.tfrecord,first-label=2: has label 1, less than first-label, which is 2");
  EXPECT_EQ(Error(bytes, ",classes=3"),
            "tfrecord:DIR/a.tfrecord,classes=3: has label 3; classes=3 are from 0 to 2");
}

TEST_F(TfRecordTest, FilesNamedTrainValAndTestAreSets) {
  Put("train-0", RecordsOf({Simple(0), Simple(1)}));
  Put("train-1", RecordsOf({Simple(2)}));
  Put("val-0", RecordsOf({Simple(1)}));
  Put("test-0", RecordsOf({Simple(4)}));
  const auto splits = Open("tfrecord", "*", 0.5);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(LabelsOf(*splits->train), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(LabelsOf(*splits->validation), std::vector<int64_t>{1});
  EXPECT_EQ(LabelsOf(*splits->test), std::vector<int64_t>{4});
  EXPECT_FALSE(splits->held_out);
}

TEST_F(TfRecordTest, ARecordStaysOnItsSideWhenOthersComeAndGo) {
  std::vector<std::string> examples;
  for (int i = 0; i < 100; ++i) examples.push_back(Simple(i));
  const auto sides = [&] {
    const auto splits = OpenFile(RecordsOf(examples), "", 0.3);
    EXPECT_TRUE(splits.ok() && splits->held_out) << splits.status().message();
    const auto held_out = LabelsOf(*splits->validation), rest = LabelsOf(*splits->train);
    EXPECT_EQ(held_out.size() + rest.size(), examples.size());
    EXPECT_TRUE(std::is_sorted(rest.begin(), rest.end()));
    return std::set<int64_t>(held_out.begin(), held_out.end());
  };
  const std::set<int64_t> all = sides();
  EXPECT_GT(all.size(), 15);
  EXPECT_LT(all.size(), 45);
  examples.erase(examples.begin(), examples.begin() + 50);
  std::set<int64_t> later(all.lower_bound(50), all.end());
  EXPECT_EQ(sides(), later);
}

TEST_F(TfRecordTest, WhatIsKnownBeforeTheModel) {
  Put("a.tfrecord", RecordsOf({Simple(1, {1, 2, 3}), Simple(2, {1, 2, 3})}));
  const auto facts = FactsBeforeModel("tfrecord:" + Path("a.tfrecord"));
  ASSERT_TRUE(facts.ok() && *facts) << facts.status().message();
  EXPECT_EQ((*facts)->sizes, (std::vector<ModelSize>{{"inputs", 3}, {"classes", 3}}));
  const std::string photo = GoldenFile("pictures/grey.jpg");
  Put("b", RecordsOf({Example({{"photo", BytesFeature(photo)}, {"label", Int64Feature({1})}})}));
  const auto no_size = FactsBeforeModel("tfrecord:" + Path("b"));
  ASSERT_TRUE(no_size.ok()) << no_size.status().message();
  EXPECT_EQ((*no_size)->fields.size(), 1);
  const auto sized = FactsBeforeModel("tfrecord:" + Path("b,size=4x5,classes=9"));
  ASSERT_TRUE(sized.ok()) << sized.status().message();
  EXPECT_EQ((*sized)->fields[1].name, "image");
  EXPECT_EQ(TypeToString((*sized)->fields[1].type), "u8[4,5,3]");
  EXPECT_EQ((*sized)->sizes, (std::vector<ModelSize>{{"classes", 9}}));
}

TEST_F(TfRecordTest, DamagedFilesAreNamedWithRecordAndByte) {
  const std::string good = RecordOf(Simple(1));
  const auto damaged = [&](size_t at) {
    std::string bytes = good + good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    return bytes;
  };
  EXPECT_EQ(Error(""), "DIR/a.tfrecord: is empty");
  EXPECT_EQ(Error("hello"),
            "DIR/a.tfrecord: is no TFRecord file: record 0 at byte 0 ends after 5 of the 12 bytes "
            "of its header");
  const std::string zlib = Error("\x78\x9C" + std::string(20, 'a'));
  EXPECT_NE(zlib.find("hint: zlib is not read; compress it with gzip"), std::string::npos) << zlib;
  EXPECT_EQ(Error(good + good.substr(0, 7)),
            "DIR/a.tfrecord: record 1 at byte 53 ends after 7 of the 12 bytes of its header");
  EXPECT_EQ(Error(good + good.substr(0, 20)),
            "DIR/a.tfrecord: record 1 at byte 53 has 37 bytes and a checksum of 4, but the file "
            "ends after 8");
  const std::string length = Error(damaged(good.size()));
  EXPECT_EQ(length.substr(0, 60), "DIR/a.tfrecord: record 1 at byte 53 has a damaged length: it");
  const std::string huge = Little64(uint64_t{1} << 63);
  EXPECT_EQ(Error(good + huge + Little32(MaskCrc32c(Crc32c(huge)))),
            "DIR/a.tfrecord: record 1 at byte 53 has 9223372036854775808 bytes, at most 2147483647 "
            "are read");
  const std::string cut = Error(Gzip(good + good).substr(0, 30));
  EXPECT_EQ(cut.substr(0, 15), "DIR/a.tfrecord:");
}

TEST_F(TfRecordTest, ADamagedRecordIsNamedWhenItIsRead) {
  std::string bytes = RecordOf(Simple(1)) + RecordOf(Simple(2));
  bytes[53 + 12 + 37] = '!';  // the checksum of the second
  const SourcePtr source = Train(bytes);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(ReadError(*source), "");
  std::vector<char> out(64);
  const std::string message = Plain(source->ReadOne(1, 1, out.data()).message());
  EXPECT_EQ(message.substr(0, 64),
            "DIR/a.tfrecord: record 1 at byte 53: is damaged: its checksum is");
}

TEST_F(TfRecordTest, AReplacedFileIsNoticed) {
  const SourcePtr source = Train(RecordOf(Simple(1)));
  ASSERT_NE(source, nullptr);
  Put("a.tfrecord", RecordOf(Simple(1)) + RecordOf(Simple(1)));
  EXPECT_EQ(ReadError(*source),
            "DIR/a.tfrecord: record 0 at byte 0: has changed since the data was opened");
}

TEST_F(TfRecordTest, RecordsThatDifferFromTheFirstAreNamed) {
  std::vector<std::string> examples(64, Simple(1));
  const auto error = [&](const Features& features) {
    std::string bytes = RecordsOf(examples) + RecordOf(Example(features));
    return Error(bytes);
  };
  const std::string place = "DIR/a.tfrecord: record 64 at byte 3392: ";
  EXPECT_EQ(error({{"x", FloatFeature({1, 2})}}), place + "has no feature 'label'");
  EXPECT_EQ(error({{"x", FloatFeature({1, 2})}, {"label", ""}}), place + "has no feature 'label'");
  EXPECT_EQ(error({{"x", FloatFeature({1, 2})}, {"label", FloatFeature({1})}}),
            place + "its feature 'label' is float, in the first record it is int64");
  EXPECT_EQ(error({{"x", FloatFeature({1})}, {"label", Int64Feature({1})}}),
            place + "its feature 'x' has 1 value, 2 are needed");
  const std::string more = RecordsOf(examples);
  EXPECT_EQ(Error(more + RecordOf("\x0A\x7F")),
            place + "is no tf.train.Example: its byte 0 begins no field of a message");
  EXPECT_EQ(Error(more + RecordOf(Part(2, ""))),
            place + "is a tf.train.SequenceExample, which is not read");
}

TEST_F(TfRecordTest, BadPicturesAreNamedWithTheirRecord) {
  const auto example = [](const std::string& bytes) {
    return Example({{"image", BytesFeature(bytes)}, {"label", Int64Feature({0})}});
  };
  const std::string photo = GoldenFile("pictures/420.jpg");
  const auto splits = OpenFile(RecordsOf({example(photo), example(photo.substr(0, 1000))}));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  std::vector<char> out(8 * 8 * 3);
  const std::string read = Plain(splits->train->ReadOne(1, 0, out.data()).message());
  EXPECT_EQ(read.substr(read.find(": its") + 2),
            "its JPEG data is damaged: Premature end of JPEG file");
  std::vector<std::string> examples(64, example(photo));
  examples.push_back(example("GIF89a"));
  const size_t at = 64 * RecordOf(example(photo)).size();
  EXPECT_EQ(Error(RecordsOf(examples)),
            "DIR/a.tfrecord: record 64 at byte " + std::to_string(at) +
                ": is no JPEG, PNG or WebP file: it begins with 47 49 46 38");
}

}  // namespace
}  // namespace ridge
