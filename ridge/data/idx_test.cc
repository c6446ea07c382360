#include "ridge/data/idx.h"

#include "ridge/data/test_files.h"

namespace ridge {
namespace {

constexpr uint32_t kImages = 0x803;
constexpr uint32_t kLabels = 0x801;

class IdxTest : public testing::Test {
 protected:
  // A folder of `samples` images u8[2,3].
  void WriteTrain(uint32_t samples) {
    folder_.Write("train-images-idx3-ubyte", Idx(kImages, {samples, 2, 3}, Counting(6 * samples)));
    folder_.Write("train-labels-idx1-ubyte", Idx(kLabels, {samples}, Counting(samples)));
  }
  Result<DataSplits> Open() { return OpenData("idx:" + folder_.path()); }
  std::string In(const std::string& text) {  // "F/" is the folder
    std::string message = text;
    for (size_t at = 0; (at = message.find("F/", at)) != std::string::npos;) {
      message.replace(at, 1, folder_.path());
      at += folder_.path().size() + 1;
    }
    return message;
  }
  // Opening fails as bad data with this message.
  void ExpectBad(const std::string& expected) {
    const auto splits = Open();
    ASSERT_FALSE(splits.ok());
    EXPECT_EQ(splits.status().code(), ErrorCode::kInvalidData);
    EXPECT_EQ(splits.status().message(), In(expected));
  }

  TempFolder folder_;
};

TEST_F(IdxTest, ReadsImagesAndLabels) {
  WriteTrain(4);
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& train = *splits->train;
  EXPECT_EQ(train.size(), 4);
  EXPECT_EQ(train.fields()[0], (Field{"image", {DType::kU8, {2, 3}}, 0}));
  EXPECT_EQ(train.fields()[1], (Field{"label", {DType::kU8, {}}, 4}));
  uint8_t image[6];
  ASSERT_TRUE(train.ReadOne(2, 0, image).ok());
  EXPECT_EQ(image[0], 12);
  EXPECT_EQ(image[5], 17);
  uint8_t label = 0;
  ASSERT_TRUE(train.ReadOne(3, train.FindField("label"), &label).ok());
  EXPECT_EQ(label, 3);
  EXPECT_EQ(splits->test, nullptr);
  EXPECT_EQ(splits->resident_bytes(), 4 * 6 + 4);
}

TEST_F(IdxTest, ReadsEverySpelling) {
  folder_.Write("train-images.idx3-ubyte.gz", Gzip(Idx(kImages, {2, 1, 1}, "ab")));
  folder_.Write("train-labels.idx1-ubyte", Idx(kLabels, {2}, Counting(2)));
  folder_.Write("t10k-images-idx3-ubyte", Idx(kImages, {1, 1, 1}, "c"));
  folder_.Write("t10k-labels-idx1-ubyte.gz", Gzip(Idx(kLabels, {1}, "\1")));
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(*static_cast<const char*>(splits->train->View(1, 0)), 'b');
  EXPECT_EQ(*static_cast<const char*>(splits->test->View(0, 0)), 'c');
  EXPECT_EQ(splits->resident_bytes(), 2 + 2 + 1 + 1);
}

TEST_F(IdxTest, ReadsGzipOfSeveralMembersAndOfALargeFile) {
  const std::string bytes = Idx(kImages, {500, 28, 28}, Counting(500 * 784));
  const std::string path =
      folder_.Write("two.gz", Gzip(bytes.substr(0, 70001)) + Gzip(bytes.substr(70001)));
  const auto tensor = ReadIdx(path);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(std::string(tensor->as<char>(), 500 * 784), Counting(500 * 784));
}

TEST_F(IdxTest, ReadsBigEndianElementsOfEveryType) {
  const auto read = [&](uint32_t magic, const std::string& elements) {
    const auto tensor = ReadIdx(folder_.Write("f", Idx(magic, {2}, elements)));
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    return *tensor;
  };
  const Tensor i8 = read(0x901, std::string("\xFF\x05", 2));
  EXPECT_EQ(i8.type().dtype, DType::kI8);
  EXPECT_EQ(i8.at(0), -1);
  const Tensor i16 = read(0xB01, std::string("\xFF\xFE\x01\x02", 4));
  EXPECT_EQ(i16.type().dtype, DType::kI32);
  EXPECT_EQ(i16.at(0), -2);
  EXPECT_EQ(i16.at(1), 258);
  const Tensor i32 = read(0xC01, std::string("\xFF\xFF\xFF\xFD\0\1\0\0", 8));
  EXPECT_EQ(i32.at(0), -3);
  EXPECT_EQ(i32.at(1), 65536);
  const Tensor f32 = read(0xD01, std::string("\x3F\xC0\0\0\xC0\0\0\0", 8));
  EXPECT_EQ(f32.at(0), 1.5);
  EXPECT_EQ(f32.at(1), -2);
  const Tensor f64 = read(0xE01, std::string("\x3F\xF8\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(f64.at(0), 1.5);
}

TEST_F(IdxTest, RefusesAFileThatIsCutOff) {
  WriteTrain(4);
  folder_.Write("train-images-idx3-ubyte", Idx(kImages, {4, 2, 3}, Counting(20)));
  ExpectBad(
      "F/train-images-idx3-ubyte: is cut off: its header declares u8[4,2,3], 24 bytes, but 20 "
      "follow");
}

TEST_F(IdxTest, RefusesAnythingCutOffByOneByteOrMore) {
  WriteTrain(4);
  const std::string whole = Idx(kImages, {4, 2, 3}, Counting(24));
  const std::string packed = Gzip(whole);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    folder_.Write("train-images-idx3-ubyte", whole.substr(0, bytes));
    EXPECT_EQ(Open().status().code(), ErrorCode::kInvalidData) << bytes;
  }
  for (size_t bytes = 0; bytes < packed.size(); ++bytes) {
    folder_.Write("train-images-idx3-ubyte", packed.substr(0, bytes));
    EXPECT_EQ(Open().status().code(), ErrorCode::kInvalidData) << bytes;
  }
}

TEST_F(IdxTest, RefusesAHeaderThatIsCutOff) {
  WriteTrain(4);
  folder_.Write("train-images-idx3-ubyte", Idx(kImages, {4, 2}, ""));
  ExpectBad("F/train-images-idx3-ubyte: is cut off: it ends inside the IDX header");
}

TEST_F(IdxTest, RefusesMoreBytesThanDeclared) {
  WriteTrain(4);
  folder_.Write("train-images-idx3-ubyte", Idx(kImages, {4, 2, 3}, Counting(25)));
  ExpectBad("F/train-images-idx3-ubyte: holds more than the 40 bytes it should");
}

TEST_F(IdxTest, RefusesDamagedGzip) {
  WriteTrain(4);
  std::filesystem::remove(folder_.path() + "/train-images-idx3-ubyte");
  std::string packed = Gzip(Idx(kImages, {4, 2, 3}, Counting(24)));
  const std::string good = packed;
  packed[packed.size() - 8] ^= 1;  // the checksum
  folder_.Write("train-images-idx3-ubyte.gz", packed);
  ExpectBad("F/train-images-idx3-ubyte.gz: its compressed data is damaged near byte " +
            std::to_string(packed.size() - 4) + " of " + std::to_string(packed.size()) +
            ": incorrect data check");
  folder_.Write("train-images-idx3-ubyte.gz", good.substr(0, good.size() - 3));
  ExpectBad("F/train-images-idx3-ubyte.gz: is cut off: its compressed data ends after " +
            std::to_string(good.size() - 3) + " bytes without an end mark");
  for (size_t at = 10; at < good.size(); ++at) {  // any one byte after gzip's header
    packed = good;
    packed[at] ^= 0x55;
    folder_.Write("train-images-idx3-ubyte.gz", packed);
    EXPECT_EQ(Open().status().code(), ErrorCode::kInvalidData) << at;
  }
}

TEST_F(IdxTest, RefusesLabelsInPlaceOfImagesAndTheOtherWayRound) {
  WriteTrain(4);
  folder_.Write("train-images-idx3-ubyte", Idx(kLabels, {4}, Counting(4)));
  ExpectBad(
      "F/train-images-idx3-ubyte: its magic number is 0x00000801 (labels), should be 0x00000803 "
      "(images)");
  WriteTrain(4);
  folder_.Write("train-labels-idx1-ubyte", Idx(kImages, {4, 1, 1}, Counting(4)));
  ExpectBad(
      "F/train-labels-idx1-ubyte: its magic number is 0x00000803 (images), should be 0x00000801 "
      "(labels)");
}

TEST_F(IdxTest, RefusesAnotherKindOfFile) {
  WriteTrain(4);
  folder_.Write("train-images-idx3-ubyte", "<html>not found</html>");
  ExpectBad(
      "F/train-images-idx3-ubyte: its magic number is 0x3c68746d, should be 0x00000803 (images)");
  const auto other = ReadIdx(folder_.path() + "/train-images-idx3-ubyte");
  EXPECT_EQ(Message(other),
            In("F/train-images-idx3-ubyte: is not an IDX file: its magic number is 0x3c68746d, "
               "should be 0x0000TTNN with type TT 08, 09, 0b, 0c, 0d or 0e"));
}

TEST_F(IdxTest, RefusesDifferentCounts) {
  WriteTrain(4);
  folder_.Write("train-labels-idx1-ubyte", Idx(kLabels, {3}, Counting(3)));
  const std::string expected = "idx:" + folder_.path() +
                               ": F/train-images-idx3-ubyte holds 4 images, "
                               "F/train-labels-idx1-ubyte holds 3 labels; they must be equal";
  ExpectBad(expected);
}

TEST_F(IdxTest, RefusesNoSamples) {
  WriteTrain(0);
  ExpectBad("F/train-images-idx3-ubyte: holds 0 samples, at least 1 is needed");
}

TEST_F(IdxTest, DoesNotBelieveAHugeHeader) {
  WriteTrain(1);
  folder_.Write("train-images-idx3-ubyte", Idx(kImages, {0x7FFFFFFF, 100, 100}, "abc"));
  ExpectBad(
      "F/train-images-idx3-ubyte: its header declares u8[2147483647,100,100], 21474836470000 "
      "bytes, the file can hold at most 19");
  const std::string packed = Gzip(Idx(kImages, {0x7FFFFFFF, 100, 100}, "abc"));
  folder_.Write("train-images-idx3-ubyte", packed);
  ExpectBad(
      "F/train-images-idx3-ubyte: its header declares u8[2147483647,100,100], 21474836470000 "
      "bytes, the file can hold at most " +
      std::to_string(packed.size() * 1032));
}

TEST_F(IdxTest, RefusesExtentsThatOverflowOrAreNegative) {
  WriteTrain(1);
  folder_.Write("train-images-idx3-ubyte", Idx(kImages, {0x7FFFFFFF, 0x7FFFFFFF, 4}, "abc"));
  EXPECT_TRUE(Message(Open()).starts_with(In("F/train-images-idx3-ubyte: its header is wrong: ")))
      << Message(Open());
  folder_.Write("train-images-idx3-ubyte", Idx(kImages, {0xFFFFFFFF, 2, 2}, "abc"));
  EXPECT_TRUE(Message(Open()).starts_with(In("F/train-images-idx3-ubyte: its header is wrong: ")))
      << Message(Open());
}

TEST_F(IdxTest, SaysThatAFileThatIsWholeDoesNotFit) {
  const std::string path = folder_.Write("sparse", Idx(kImages, {1 << 20, 1 << 10, 1 << 10}, ""));
  std::error_code error;
  std::filesystem::resize_file(path, (uint64_t{1} << 40) + 16, error);  // holes take no disk
  if (error) GTEST_SKIP() << "not on this machine: no sparse files: " << error.message();
  const auto tensor = ReadIdx(path);
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(
      Message(tensor).starts_with(path + ": u8[1048576,1024,1024] needs 1099511627776 bytes, "))
      << Message(tensor);
}

TEST_F(IdxTest, NamesWhatIsMissing) {
  ExpectBad("idx:" + folder_.path() +
            ": there is no train-images-idx3-ubyte (nor .gz) in the folder");
  WriteTrain(2);
  folder_.Write("t10k-images-idx3-ubyte", Idx(kImages, {1, 1, 1}, "c"));
  ExpectBad("idx:" + folder_.path() +
            ": there is no t10k-labels-idx1-ubyte (nor .gz) in the folder");
  EXPECT_EQ(Message(OpenData("idx:/no/such/folder")),
            "idx:/no/such/folder: there is no folder /no/such/folder");
  DataOptions options;
  options.fashion_mnist_folder = "/no/such/folder";
  EXPECT_EQ(Message(OpenData("fashion-mnist", options)),
            "fashion-mnist: there is no folder /no/such/folder. hint: apt-get install "
            "dataset-fashion-mnist");
}

TEST_F(IdxTest, RefusesAFolderInPlaceOfAFile) {
  WriteTrain(2);
  std::filesystem::remove(folder_.path() + "/train-images-idx3-ubyte");
  std::filesystem::create_directory(folder_.path() + "/train-images-idx3-ubyte");
  ExpectBad("F/train-images-idx3-ubyte: is a folder, not a file");
}

TEST(FashionMnist, IsWhatItsAuthorsPublished) {
  const auto splits = OpenData("fashion-mnist");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 60000);
  EXPECT_EQ(splits->test->size(), 10000);
  EXPECT_EQ(splits->train->fields()[0].type, (TensorType{DType::kU8, {28, 28}}));
  EXPECT_EQ(splits->train->fields()[1].classes, 10);
  EXPECT_EQ(*static_cast<const uint8_t*>(splits->train->View(0, 1)), 9);
  EXPECT_EQ(splits->resident_bytes(), 70000 * 785);
}

}  // namespace
}  // namespace ridge
