#include "ridge/core/tensor_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr char kHint[] =
    ". hint: start again, and leave the file as it is until the first step has run";

// Three odd bytes, then the floats 0, 1, ... 4999.
class TensorFileTest : public ::testing::Test {
 protected:
  static constexpr int64_t kFloats = 5000, kOffset = 3;

  TensorFileTest() {
    std::vector<float> values(kFloats);
    std::iota(values.begin(), values.end(), 0.0F);
    numbers_ = Tensor::FromFloats({50, 100}, values);
    bytes_ = "abc" + std::string(numbers_.as<char>(), static_cast<size_t>(numbers_.bytes()));
    folder_.Write("w", bytes_);
    tensor_ = Open();
  }

  Tensor Open() const {
    const auto file = TensorFile::Adopt(OwnedFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)), "w",
                                        ErrorCode::kInvalidModel);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return TensorInFile({DType::kF32, {50, 100}}, *file, kOffset);
  }

  std::string LoadError() const {
    const Result<Tensor> loaded = tensor_.Load();
    EXPECT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.status().code(), ErrorCode::kInvalidModel);
    return loaded.status().message();
  }

  // The clock's tick may be longer than a test.
  void SetLaterTime() const {
    const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }

  TempFolder folder_;
  const std::string path_ = folder_.File("w");
  std::string bytes_;
  Tensor numbers_, tensor_;
};

TEST_F(TensorFileTest, GivesTheBitsOfTheFile) {
  EXPECT_FALSE(tensor_.in_memory());
  EXPECT_EQ(tensor_.bytes(), 4 * kFloats);
  const Result<Tensor> loaded = tensor_.Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_TRUE(loaded->in_memory());
  EXPECT_TRUE(loaded->same_bits(numbers_));
  float piece[3] = {};
  ASSERT_TRUE(tensor_.Read(4997, 5000, piece).ok());
  EXPECT_EQ(piece[2], 4999);
}

TEST_F(TensorFileTest, MemoryIsReadInTheSameWay) {
  float piece[2] = {};
  ASSERT_TRUE(numbers_.Read(7, 9, piece).ok());
  EXPECT_EQ(piece[1], 8);
  EXPECT_EQ(numbers_.Load()->data(), numbers_.data());
}

TEST_F(TensorFileTest, HasNoAddress) {
  EXPECT_THROW((void)tensor_.data(), Bug);
  EXPECT_THROW((void)tensor_.at(0), Bug);
  EXPECT_THROW((void)tensor_.same_bits(numbers_), Bug);
}

TEST_F(TensorFileTest, ADeletedOrReplacedFileKeepsItsNumbers) {
  fs::rename(path_, folder_.File("other"));
  folder_.Write("w", "new");
  EXPECT_TRUE(tensor_.Load()->same_bits(numbers_));
  fs::remove(folder_.File("other"));
  EXPECT_TRUE(tensor_.Load()->same_bits(numbers_));
}

TEST_F(TensorFileTest, AnotherSizeIsRefused) {
  fs::resize_file(path_, 4000);
  EXPECT_EQ(LoadError(), std::string("w: has changed: it has 4000 bytes, and had 20003 when it was "
                                     "opened") +
                             kHint);
  fs::resize_file(path_, 30000);  // also where all that is wanted is there
  EXPECT_EQ(LoadError(), std::string("w: has changed: it has 30000 bytes, and had 20003 when it "
                                     "was opened") +
                             kHint);
}

TEST_F(TensorFileTest, ALaterWriteIsRefused) {
  SetLaterTime();
  EXPECT_EQ(LoadError(),
            std::string("w: has changed: it was written to after it was opened") + kHint);
  EXPECT_TRUE(Open().Load().ok());
}

TEST_F(TensorFileTest, ConvertsAsInMemory) {
  for (const DType to : {DType::kF16, DType::kF64, DType::kI32}) {
    const Tensor late = Converted(tensor_, to), now = Converted(numbers_, to);
    EXPECT_FALSE(late.in_memory());
    EXPECT_TRUE(now.in_memory());
    const Result<Tensor> loaded = late.Load();
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(loaded->same_bits(now)) << DTypeName(to);
    EXPECT_EQ(now.at(1500), 1500);
  }
}

}  // namespace
}  // namespace ridge
