#include "ridge/core/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

std::string TestPath(const std::string& name) { return TestFolder() + "/" + name; }

OutputFile MustOpen(const std::string& path, OutputFile::Mode mode) {
  Result<OutputFile> file = OutputFile::Open(path, mode);
  RIDGE_CHECK(file.ok(), file.status().message());
  return std::move(*file);
}

std::string Content(const std::string& path) {
  Result<std::string> text = ReadFile(path);
  return text.ok() ? *text : text.status().message();
}

TEST(OutputFile, AppendsAndGoesOnLater) {
  const std::string path = TestPath("append.txt");
  OutputFile file = MustOpen(path, OutputFile::Mode::kReplace);
  EXPECT_TRUE(file.Append("one ").ok());
  EXPECT_TRUE(file.Append("two").ok());
  EXPECT_EQ(Content(path), "one two");  // before any sync
  EXPECT_TRUE(file.Close().ok());
  EXPECT_TRUE(file.Close().ok());
  OutputFile again = MustOpen(path, OutputFile::Mode::kKeep);
  EXPECT_EQ(again.size_bytes(), 7);
  EXPECT_TRUE(again.CutTo(4).ok());
  EXPECT_TRUE(again.Append("three").ok());
  EXPECT_EQ(Content(path), "one three");
}

TEST(OutputFile, NewRefusesAFileThatIsThere) {
  const std::string path = TestPath("there.txt");
  ASSERT_TRUE(MustOpen(path, OutputFile::Mode::kReplace).Close().ok());
  const Result<OutputFile> file = OutputFile::Open(path, OutputFile::Mode::kNew);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().message(), path + ": cannot create: File exists");
}

TEST(OutputFile, NamesPathAndReason) {
  const Result<OutputFile> file = OutputFile::Open("/no/such/x", OutputFile::Mode::kReplace);
  EXPECT_EQ(file.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(file.status().message(), "/no/such/x: cannot create: No such file or directory");
  OutputFile full = MustOpen("/dev/full", OutputFile::Mode::kKeep);
  const Status status = full.Append("x");
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(status.message(), "/dev/full: cannot write: No space left on device");
}

TEST(OutputFile, ADescriptorThatIsOpenIsNotEmptied) {
  const std::string path = TestPath("descriptor.txt");
  OutputFile file = MustOpen(path, OutputFile::Mode::kReplace);
  ASSERT_TRUE(file.Append("before, ").ok());
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  OutputFile same = MustOpen("/proc/self/fd/" + std::to_string(fd), OutputFile::Mode::kReplace);
  EXPECT_TRUE(same.Append("after").ok());
  EXPECT_TRUE(same.Close().ok());
  ::close(fd);
  EXPECT_EQ(Content(path), "before, after");
}

TEST(OutputFile, ShortWriteLeavesNoPart) {
  const std::string path = TestPath("short.txt");
  OutputFile file = MustOpen(path, OutputFile::Mode::kReplace);
  ASSERT_TRUE(file.Append("whole ").ok());
  {
    const FileSizeLimit limit(8);
    EXPECT_EQ(file.Append("piece").message(), path + ": cannot write: File too large");
  }
  EXPECT_EQ(Content(path), "whole ");
  EXPECT_TRUE(file.Append("next").ok());
  EXPECT_EQ(Content(path), "whole next");
}

}  // namespace
}  // namespace ridge
