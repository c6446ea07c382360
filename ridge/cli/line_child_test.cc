#include "ridge/cli/line_child.h"

#include <gtest/gtest.h>

#include <chrono>

namespace ridge::cli {
namespace {

Status StartShell(LineChild& child, const std::string& script) {
  return child.Start({"/bin/sh", "-c", script});
}

std::string Refusal(const std::string& script, double seconds) {
  LineChild child;
  EXPECT_TRUE(StartShell(child, script).ok());
  const Result<std::string> line = child.Read(seconds);
  EXPECT_FALSE(line.ok());
  EXPECT_EQ(line.status().code(), ErrorCode::kUnavailable);
  return line.status().message();
}

TEST(LineChild, AnswersLinesByLines) {
  LineChild child;
  ASSERT_TRUE(StartShell(child, "while read a; do echo \"<$a>\"; done").ok());
  for (const char* line : {"one", "two words", ""}) {
    ASSERT_TRUE(child.Write(line).ok());
    EXPECT_EQ(*child.Read(10), std::string("<") + line + ">");
  }
}

TEST(LineChild, LinesThatComeTogetherAreReadOneByOne) {
  LineChild child;
  ASSERT_TRUE(StartShell(child, "printf 'a\\nb\\n'; sleep 100").ok());
  EXPECT_EQ(*child.Read(10), "a");
  EXPECT_EQ(*child.Read(10), "b");
}

TEST(LineChild, WaitsNoLongerThanItMay) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Refusal("sleep 100", 0.2), "gave no answer within 0.2 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(LineChild, SaysHowTheChildEnded) {
  EXPECT_EQ(Refusal("exit 3", 10), "ended with 3");
  EXPECT_EQ(Refusal("kill -SEGV $$", 10), "ended by signal 11");
  EXPECT_EQ(Refusal("echo first >&2; echo last >&2; exit 2", 10), "ended: last");
}

TEST(LineChild, AProgramThatIsNotThereEnds) {
  LineChild child;
  ASSERT_TRUE(child.Start({"/nowhere/program"}).ok());
  EXPECT_EQ(child.Read(10).status().message(), "ended with 127");
}

TEST(LineChild, AWriteToAChildThatHasGoneIsAnErrorAndNoSignal) {
  LineChild child;
  ASSERT_TRUE(StartShell(child, "exit 0").ok());
  EXPECT_FALSE(child.Read(10).ok());
  EXPECT_FALSE(child.Write("more").ok());
}

TEST(LineChild, ALineWithoutEndIsRefused) {
  EXPECT_EQ(Refusal("yes | tr -d '\\n'", 10), "gave a line without an end");
}

}  // namespace
}  // namespace ridge::cli
