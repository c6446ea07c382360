#include "ridge/core/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

std::string TestPath(const std::string& name) { return TestFolder() + "/" + name; }

std::string Content(const std::string& path) {
  Result<std::string> text = ReadFile(path);
  return text.ok() ? *text : text.status().message();
}

Status Write(const std::string& path, const std::string& content) {
  return WriteFileAtomically(path, content);
}

TEST(Files, ALinkStaysALinkAndItsEndIsWritten) {
  ASSERT_TRUE(Write(TestPath("end.txt"), "old").ok());
  fs::create_symlink("end.txt", TestPath("link.txt"));
  fs::create_symlink(TestPath("link.txt"), TestPath("link2.txt"));
  ASSERT_TRUE(Write(TestPath("link2.txt"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(TestPath("link.txt")));
  EXPECT_TRUE(fs::is_symlink(TestPath("link2.txt")));
  EXPECT_EQ(Content(TestPath("end.txt")), "new");
}

TEST(Files, ALinkToNothingMakesWhatItNames) {
  fs::create_symlink("made.txt", TestPath("dangling.txt"));
  ASSERT_TRUE(Write(TestPath("dangling.txt"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(TestPath("dangling.txt")));
  EXPECT_EQ(Content(TestPath("made.txt")), "new");
}

TEST(Files, LinksInACircleAreAnError) {
  fs::create_symlink("b.txt", TestPath("a.txt"));
  fs::create_symlink("a.txt", TestPath("b.txt"));
  const Status status = Write(TestPath("a.txt"), "x");
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(status.message(),
            TestPath("a.txt") + ": cannot follow: Too many levels of symbolic links");
}

TEST(Files, AnExistingFileKeepsItsPermissions) {
  const std::string path = TestPath("private.txt");
  ASSERT_TRUE(Write(path, "old").ok());
  for (const mode_t mode : {0600, 0640, 0755}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(Write(path, "new").ok());
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode);
  }
}

TEST(Files, APipeIsWrittenToAndStaysAPipe) {
  const std::string path = TestPath("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = Content(path); });
  EXPECT_TRUE(Write(path, "through the pipe").ok());
  reader.join();
  EXPECT_EQ(read, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(path));
}

// Its own node of the null device: a test must not risk the system's.
TEST(Files, ADeviceIsWrittenToAndStaysADevice) {
  const std::string path = TestPath("null");
  if (mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0)
    GTEST_SKIP() << "not on this machine: no right to mknod";
  (void)Write(path, "gone");  // a file system may refuse to open devices
  EXPECT_TRUE(fs::is_character_file(path));
}

TEST(Files, ADescriptorOfThisProcessIsWrittenWhereItStands) {
  const std::string path = TestPath("descriptor.txt");
  ASSERT_TRUE(Write(path, "").ok());
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "before, ", 8), 8);
  for (const std::string folder : {"/proc/self/fd/", "/dev/fd/"}) {
    ASSERT_TRUE(Write(folder + std::to_string(fd), "after, ").ok());
  }
  fs::create_symlink("/proc/self/fd/" + std::to_string(fd), TestPath("to_descriptor"));
  ASSERT_TRUE(Write(TestPath("to_descriptor"), "end").ok());
  close(fd);
  EXPECT_EQ(Content(path), "before, after, after, end");
}

TEST(Files, ADashIsStandardOutput) {
  const Result<OutputTarget> target = FindOutputTarget("-");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->descriptor, STDOUT_FILENO);
  EXPECT_TRUE(target->in_place);
  const Result<OutputTarget> file = FindOutputTarget("./-");
  EXPECT_EQ(file->descriptor, -1);
}

// A folder that everybody may write to could hold a profile that somebody else put there.
TEST(Files, TheCacheIsNeverInATemporaryFolder) {
  const char* home = std::getenv("HOME");
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const std::string old_home = home == nullptr ? "" : home, old_xdg = xdg == nullptr ? "" : xdg;
  unsetenv("XDG_CACHE_HOME");
  for (const char* value : {static_cast<const char*>(nullptr), "", "relative"}) {
    value == nullptr ? unsetenv("HOME") : setenv("HOME", value, 1);
    const passwd* user = getpwuid(geteuid());
    const std::string expected = user == nullptr ? "/nonexistent" : user->pw_dir;
    EXPECT_EQ(CacheFolder(), expected + "/.cache/ridge");
  }
  setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(CacheFolder(), "/somewhere/.cache/ridge");
  home == nullptr ? unsetenv("HOME") : setenv("HOME", old_home.c_str(), 1);
  if (xdg != nullptr) setenv("XDG_CACHE_HOME", old_xdg.c_str(), 1);
}

}  // namespace
}  // namespace ridge
