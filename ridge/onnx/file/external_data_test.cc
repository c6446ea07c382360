// The path attacks that ONNX's external data has suffered, one by one, with openat2 and without.
#include "ridge/onnx/file/external_data.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OpenBeneathTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    fs::remove_all(outer_);
    fs::create_directories(folder_ + "/sub");
    std::ofstream(outer_ + "/secret") << "secret";
    std::ofstream(folder_ + "/weights.bin") << "12345678";
    std::ofstream(folder_ + "/sub/more.bin") << "more";
  }

  Result<OwnedFd> Open(const std::string& name, int flags = O_RDONLY) {
    return OpenBeneathWith(folder_, name, flags, 0644, GetParam());
  }

  void ExpectRefused(const std::string& name, const std::string& text) {
    const Result<OwnedFd> file = Open(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.status().code(), ErrorCode::kInvalidModel);
    EXPECT_THAT(file.status().message(), HasSubstr(text)) << name;
  }

  const std::string outer_ = TestFolder() + "/external";
  const std::string folder_ = outer_ + "/model";
};

INSTANTIATE_TEST_SUITE_P(BothWays, OpenBeneathTest, ::testing::Bool());

TEST_P(OpenBeneathTest, OpensFilesInTheFolderAndBelow) {
  EXPECT_TRUE(Open("weights.bin").ok());
  EXPECT_TRUE(Open("./weights.bin").ok());
  EXPECT_TRUE(Open("sub/more.bin").ok());
  EXPECT_TRUE(Open("sub//./more.bin").ok());
}

TEST_P(OpenBeneathTest, RefusesParentsWhereverTheyStand) {
  ExpectRefused("../secret", "has '..'; it must stay in the model's folder");
  ExpectRefused("sub/../../secret", "has '..'");
  ExpectRefused("sub/../weights.bin", "has '..'");
  ExpectRefused("..", "has '..'");
  ExpectRefused("sub/..", "has '..'");
  ExpectRefused("./../secret", "has '..'");
}

TEST_P(OpenBeneathTest, RefusesAbsolutePaths) {
  ExpectRefused("/etc/passwd", "the path is absolute; it must be relative");
  ExpectRefused("//etc/passwd", "the path is absolute");
  ExpectRefused(folder_ + "/weights.bin", "the path is absolute");
}

TEST_P(OpenBeneathTest, RefusesNamesThatNameNoFile) {
  ExpectRefused("", "the name is empty");
  ExpectRefused(".", "names a folder, no file");
  ExpectRefused("sub/", "names a folder, no file");
  ExpectRefused("sub", "is no regular file");
  ExpectRefused(std::string("weights.bin\0x", 13), "holds a zero byte");
  ExpectRefused(std::string(5000, 'a'), "the name has 5000 bytes; at most 4096");
  ExpectRefused(std::string(300, 'a'), "can't be opened");
  ExpectRefused("missing.bin", "there is no such file in the model's folder");
  ExpectRefused("weights.bin/x", "no folder");
}

TEST_P(OpenBeneathTest, FollowsNoLinkToAFile) {
  fs::create_symlink(outer_ + "/secret", folder_ + "/link");
  ExpectRefused("link", "symbolic link");
  fs::create_symlink("weights.bin", folder_ + "/inner");  // even one that stays inside
  ExpectRefused("inner", "symbolic link");
}

TEST_P(OpenBeneathTest, FollowsNoLinkToAFolder) {
  fs::create_directory_symlink(outer_, folder_ + "/out");
  const Result<OwnedFd> file = Open("out/secret");
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.status().message(), HasSubstr("link"));
}

TEST_P(OpenBeneathTest, DoesNotWaitForPipes) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0644), 0);
  ExpectRefused("pipe", "is no regular file");
}

TEST_P(OpenBeneathTest, FollowsLinksToTheFolderItself) {
  fs::create_directory_symlink(folder_, outer_ + "/by_link");
  EXPECT_TRUE(OpenBeneathWith(outer_ + "/by_link", "weights.bin", O_RDONLY, 0, GetParam()).ok());
}

TEST_P(OpenBeneathTest, WritesOnlyBelowTheFolder) {
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  EXPECT_TRUE(Open("new.bin", kWrite).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/new.bin"));
  EXPECT_FALSE(Open("../new.bin", kWrite).ok());
  EXPECT_FALSE(fs::exists(outer_ + "/new.bin"));
  fs::create_symlink(outer_ + "/secret", folder_ + "/link");
  EXPECT_FALSE(Open("link", kWrite).ok());
  EXPECT_EQ(fs::file_size(outer_ + "/secret"), 6u);
  const Result<OwnedFd> no_folder = Open("none/new.bin", kWrite);
  ASSERT_FALSE(no_folder.ok());
  EXPECT_EQ(no_folder.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(no_folder.status().message(), HasSubstr("can't be written"));
}

class ExternalFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    std::ofstream(folder_ + "/w") << "12345678";
    std::ofstream(folder_ + "/empty");
  }

  std::string Message(const ExternalRange& range, int64_t bytes) {
    const auto found = files_.Find(range, bytes, "tensor 'w'");
    return found.ok() ? "" : found.status().message();
  }

  const std::string folder_ = TestFolder() + "/files";
  ExternalFiles files_{folder_};
};

TEST_F(ExternalFilesTest, GivesTheBytesOfARange) {
  const auto place = files_.Find({"w", 3, 4}, 4, "tensor 'w'");
  ASSERT_TRUE(place.ok());
  std::string bytes(4, ' ');
  ASSERT_TRUE(place->file->Read(place->offset_bytes, 4, bytes.data()).ok());
  EXPECT_EQ(bytes, "4567");
  EXPECT_EQ(Message({"w", 0, -1}, 8), "");
  EXPECT_EQ(Message({"w", 8, 0}, 0), "");
  EXPECT_EQ(Message({"empty", 0, -1}, 0), "");
}

TEST_F(ExternalFilesTest, ComparesTheRangeWithTheFileFirst) {
  EXPECT_EQ(Message({"w", 5, 4}, 4), "tensor 'w': needs 4 bytes from byte 5 of 'w', which has 8");
  EXPECT_EQ(Message({"w", 9, 0}, 0), "tensor 'w': needs 0 bytes from byte 9 of 'w', which has 8");
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(Message({"w", kHuge, kHuge}, kHuge), HasSubstr("which has 8"));
  EXPECT_THAT(Message({"w", 0, -1}, kHuge), HasSubstr("which has 8"));
  EXPECT_EQ(Message({"w", 0, 4}, 8), "tensor 'w': 'length' is 4 bytes; its type needs 8");
}

TEST_F(ExternalFilesTest, RefusesModelsWithoutAFolder) {
  ExternalFiles none("");
  const auto found = none.Find({"w", 0, -1}, 8, "tensor 'w'");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message(),
            "tensor 'w': lies in the file 'w', but this model has no folder");
}

TEST_F(ExternalFilesTest, BoundsWhatIsCopiedOutOfAFile) {
  EXPECT_TRUE(files_.SpendCopy({"w", 0, -1}, 64, "tensor 'w'").ok());
  const Status status = files_.SpendCopy({"w", 0, -1}, 1, "tensor 'w'");
  EXPECT_THAT(status.message(), HasSubstr("more than eight times its 8 bytes"));
}

}  // namespace
}  // namespace ridge
