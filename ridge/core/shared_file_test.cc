#include "ridge/core/shared_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "ridge/core/crc32c.h"
#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

class SharedFileTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::string path_ = folder_.File("x");
};

TEST_F(SharedFileTest, RangesInAnyOrderMakeTheFile) {
  ASSERT_TRUE(MakeFileOf(path_, 10).ok());
  Result<SharedFile> one = SharedFile::Open(path_), other = SharedFile::Open(path_);
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_TRUE(one->WriteAt(4, "45").ok());
  ASSERT_TRUE(other->WriteAt(0, "01").ok());
  ASSERT_TRUE(other->WriteAt(2, "23").ok());
  ASSERT_TRUE(other->WriteAt(8, "89").ok());
  ASSERT_TRUE(one->WriteAt(6, "67").ok());
  EXPECT_TRUE(one->Close().ok());
  EXPECT_TRUE(other->Close().ok());
  EXPECT_EQ(*ReadFile(path_, 100), "0123456789");
  EXPECT_EQ(one->ranges().size(), 1U);
  EXPECT_EQ(other->ranges().size(), 2U);
  std::vector<SharedFile::Range> all = one->ranges();
  all.insert(all.end(), other->ranges().begin(), other->ranges().end());
  EXPECT_EQ(JoinRanges(all, 10), Crc32c("0123456789"));
  EXPECT_EQ(JoinRanges(all, 11), std::nullopt);
  EXPECT_EQ(JoinRanges(one->ranges(), 8), std::nullopt);
}

TEST_F(SharedFileTest, WhatAnotherOverwroteIsDamage) {
  ASSERT_TRUE(MakeFileOf(path_, 4).ok());
  Result<SharedFile> file = SharedFile::Open(path_);
  ASSERT_TRUE(file->WriteAt(0, "0123").ok());
  std::fstream(path_, std::ios::in | std::ios::out).put('X');
  const Status closed = file->Close();
  EXPECT_EQ(closed.code(), ErrorCode::kInvalidData);
  EXPECT_EQ(closed.message(),
            path_ + ": damaged: bytes 0 to 4 have crc32c 8cfe4a33, written were 063962b9");
}

TEST_F(SharedFileTest, AFileThatIsNotThereIsNamed) {
  EXPECT_EQ(SharedFile::Open(path_).status().message(),
            path_ + ": cannot open: No such file or directory");
}

TEST_F(SharedFileTest, TheRoomIsTakenBeforeAnybodyWrites) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status made = MakeFileOf(path_, 2000);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(made.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(made.message(), path_ + ": cannot write: File too large");
}

}  // namespace
}  // namespace ridge
