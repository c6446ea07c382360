#include "ridge/cli/cudnn_asker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ridge::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A folder with a helper that is a shell script.
class CudnnAskerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ridge-cudnn-XXXXXX";
    folder_ = mkdtemp(name);
    fs::create_directories(folder_ + "/devices");
    Write("devices/h200-sxm.json", "{}");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  // Notes each question in the file `questions`.
  void Helper(const std::string& answer, const std::string& version = "92001") const {
    Write("cudnn_ask", "#!/bin/sh\necho " + version + "\nwhile read q; do echo \"$q\" >> " +
                           folder_ + "/questions\n" + answer + "\ndone\n");
    fs::permissions(folder_ + "/cudnn_ask", fs::perms::owner_all);
  }
  int64_t Questions() const {
    std::ifstream in(folder_ + "/questions");
    int64_t lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    return lines;
  }
  std::unique_ptr<CudnnAsker> Asker(double seconds = 10, const std::string& device = "h200-sxm") {
    return std::make_unique<CudnnAsker>(
        device, CudnnPlaces{folder_, folder_ + "/cache", seconds},
        [this](const std::string& line) { said_.push_back(line); },
        [this](const std::string& line) { warned_.push_back(line); });
  }
  std::string Warning(const std::string& what) const {
    return "RIDGE_CUDNN: " + what +
           "; workspaces on h200-sxm that are not known stay upper bounds. hint: "
           "scripts/build_cudnn_ask.sh " +
           folder_;
  }

  std::string folder_;
  std::vector<std::string> said_, warned_;
};

TEST_F(CudnnAskerTest, GivesWhatTheLibraryAnswers) {
  Helper("echo 45 123 0 eng_7");
  const std::optional<ConvReply> reply = Asker()->Ask("conv a");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->library, "cuDNN 9.20.1");
  EXPECT_EQ(reply->answer.first_bytes, 45);
  EXPECT_EQ(reply->answer.bytes, 123);
  EXPECT_THAT(warned_, IsEmpty());
  ASSERT_THAT(said_, SizeIs(2));
  EXPECT_EQ(said_[0], "asking cuDNN 9.20.1 about convolutions on h200-sxm (answers are kept in " +
                          folder_ + "/cache)");
}

TEST_F(CudnnAskerTest, AnswersAndRefusalsAreKeptByVersionAndDevice) {
  Helper("case $q in *b) echo refused no engine;; *) echo 1 1 1 e;; esac");
  for (int run = 0; run < 2; ++run) {
    const auto asker = Asker();
    EXPECT_TRUE(asker->Ask("conv a"));
    EXPECT_FALSE(asker->Ask("conv b"));
    EXPECT_TRUE(asker->Ask("conv a"));
  }
  EXPECT_EQ(Questions(), 2);
  Helper("echo 2 2 1 e", "92002");  // another version
  EXPECT_EQ(Asker()->Ask("conv a")->answer.bytes, 2);
  EXPECT_EQ(Questions(), 3);
  Write("devices/h200-sxm.json", "{\"other\":1}");
  EXPECT_TRUE(Asker()->Ask("conv a"));
  EXPECT_EQ(Questions(), 4);
}

TEST_F(CudnnAskerTest, KeptLinesThatAreDamagedAreAskedAgain) {
  Helper("echo 1 1 1 e");
  EXPECT_TRUE(Asker()->Ask("conv a"));
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder_ + "/cache")) {
    if (file.is_regular_file()) std::ofstream(file.path()) << "conv a\tnonsense\nno tab\n";
  }
  EXPECT_EQ(Asker()->Ask("conv a")->answer.bytes, 1);
  EXPECT_EQ(Questions(), 2);
}

TEST_F(CudnnAskerTest, AHelperThatHangsIsGivenUpOnce) {
  Helper("sleep 100");
  const auto asker = Asker(/*seconds=*/0.2);
  EXPECT_FALSE(asker->Ask("conv a"));
  EXPECT_FALSE(asker->Ask("conv b"));
  EXPECT_THAT(warned_, ElementsAre(Warning(folder_ + "/cudnn_ask gave no answer within 0.2 s to "
                                                     "'conv a'")));
}

TEST_F(CudnnAskerTest, AHelperThatCrashesIsGivenUpAndEarlierAnswersAreKept) {
  Helper("case $q in *b) echo no symbol >&2; exit 2;; *) echo 1 1 1 e;; esac");
  {
    const auto asker = Asker();
    EXPECT_TRUE(asker->Ask("conv a"));
    EXPECT_FALSE(asker->Ask("conv b"));
    EXPECT_FALSE(asker->Ask("conv c"));
    EXPECT_THAT(warned_, ElementsAre(Warning(folder_ + "/cudnn_ask ended: no symbol to 'conv b'")));
  }
  EXPECT_TRUE(Asker()->Ask("conv a"));
  EXPECT_EQ(Questions(), 2);
}

TEST_F(CudnnAskerTest, WhatIsNoAnswerIsGivenUp) {
  Helper("echo hello");
  EXPECT_FALSE(Asker()->Ask("conv a"));
  EXPECT_THAT(warned_, ElementsAre(Warning(folder_ + "/cudnn_ask answered 'hello' to 'conv a'")));
}

TEST_F(CudnnAskerTest, WhatBeginsWithNoVersionIsGivenUp) {
  Helper("echo 1 1 1 e", "hello");
  EXPECT_FALSE(Asker()->Ask("conv a"));
  EXPECT_THAT(warned_, ElementsAre(Warning(folder_ + "/cudnn_ask began with 'hello', no version")));
}

TEST_F(CudnnAskerTest, WhatIsNotThereIsNamed) {
  EXPECT_FALSE(Asker()->Ask("conv a"));
  EXPECT_THAT(warned_, ElementsAre(Warning(folder_ + "/cudnn_ask is not there")));
  warned_.clear();
  Helper("echo 1 1 1 e");
  fs::remove(folder_ + "/devices/h200-sxm.json");
  EXPECT_FALSE(Asker()->Ask("conv a"));
  EXPECT_THAT(warned_, ElementsAre(Warning(folder_ + "/devices/h200-sxm.json is not there")));
}

}  // namespace
}  // namespace ridge::cli
