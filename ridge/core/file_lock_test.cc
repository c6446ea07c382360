#include "ridge/core/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

std::string TestPath(const std::string& name) { return TestFolder() + "/" + name; }

// Whether the lock could be taken; held by `lock`.
bool Take(const std::string& path, std::optional<FileLock>& lock, LockHolder& holder) {
  Result<std::optional<FileLock>> taken = FileLock::Take(path, holder);
  RIDGE_CHECK(taken.ok(), taken.status().message());
  lock = std::move(*taken);
  return lock.has_value();
}

TEST(FileLock, OneAtATimeAndTheOtherLearnsWho) {
  const std::string path = TestPath("lock");
  std::optional<FileLock> first, second;
  LockHolder holder;
  EXPECT_TRUE(Take(path, first, holder));
  EXPECT_FALSE(Take(path, second, holder));
  EXPECT_EQ(holder.process, getpid());
  EXPECT_EQ(holder.machine, "");
  first.reset();
  EXPECT_TRUE(Take(path, second, holder));
}

TEST(FileLock, AProcessThatIsKilledLetsGo) {
  const std::string path = TestPath("killed");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::optional<FileLock> lock;
    LockHolder holder;
    const char taken = Take(path, lock, holder) ? 'y' : 'n';
    (void)!write(ready[1], &taken, 1);
    pause();
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  std::optional<FileLock> lock;
  LockHolder holder;
  EXPECT_FALSE(Take(path, lock, holder));
  EXPECT_EQ(holder.process, child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Take(path, lock, holder));
  EXPECT_EQ(ReadFile(path)->find(std::to_string(getpid()) + " "), 0u);
}

TEST(FileLock, TheHolderIsToldWithoutTakingAnything) {
  const std::string path = TestPath("asked");
  EXPECT_EQ(FileLock::Holder(path), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(path));
  std::optional<FileLock> lock, other;
  LockHolder holder;
  EXPECT_TRUE(Take(path, lock, holder));
  EXPECT_EQ(FileLock::Holder(path), getpid());
  EXPECT_FALSE(Take(path, other, holder));
  lock.reset();
  EXPECT_EQ(FileLock::Holder(path), std::nullopt);
  EXPECT_TRUE(Take(path, other, holder));
}

// Folders are shared by machines: the number of a process says nothing without its machine.
TEST(FileLock, AHolderOnAnotherMachineIsNamedWithIt) {
  const std::string path = TestPath("shared");
  std::optional<FileLock> lock, other;
  LockHolder holder;
  EXPECT_TRUE(Take(path, lock, holder));
  const auto told = [&](const std::string& text) {
    std::ofstream(path) << text;
    EXPECT_FALSE(Take(path, other, holder));
    return HolderText(holder);
  };
  EXPECT_EQ(told("77 node-3.cluster\n"), "process 77 on node-3.cluster");
  EXPECT_EQ(told("77\n"), "process 77");  // of an older ridge
  EXPECT_EQ(told(""), "another process");
}

TEST(FileLock, AFolderThatIsNotThereIsAnError) {
  LockHolder holder;
  EXPECT_EQ(FileLock::Take("/no/such/lock", holder).status().message(),
            "/no/such/lock: cannot create: No such file or directory");
}

}  // namespace
}  // namespace ridge
