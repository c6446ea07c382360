#include "ridge/data/container/file_list.h"

#include "ridge/data/container/test_containers.h"

namespace ridge {
namespace {

using Texts = std::vector<std::string>;

TEST(ExpandBraces, CountAndListAsShellsDo) {
  EXPECT_EQ(*ExpandBraces("a-{008..011}.tar"),
            (Texts{"a-008.tar", "a-009.tar", "a-010.tar", "a-011.tar"}));
  EXPECT_EQ(*ExpandBraces("{9..11}"), (Texts{"9", "10", "11"}));
  EXPECT_EQ(*ExpandBraces("{a,b{1..2}}/{x,}"), (Texts{"a/x", "a/", "b1/x", "b1/", "b2/x", "b2/"}));
}

TEST(ExpandBraces, OthersStandForThemselves) {
  for (const char* text : {"plain", "{one}", "{", "a}b{", "{3..1}", "{a..}", "{}"})
    EXPECT_EQ(*ExpandBraces(text), Texts{text});
  EXPECT_EQ(*ExpandBraces("{one}{1..2}"), (Texts{"{one}1", "{one}2"}));
}

TEST(ExpandBraces, RefusesMoreThanAMillion) {
  EXPECT_EQ(Message(ExpandBraces("{0..1000}{0..1100}")),
            "its braces stand for more than 1048576 files");
}

class FileListTest : public ContainerTest {
 protected:
  Texts Find(const std::string& pattern) {
    auto files = FindFiles("tar:x", Path(pattern));
    EXPECT_TRUE(files.ok()) << files.status().message();
    if (!files.ok()) return {};
    for (std::string& file : *files) file = Plain(file);
    return *files;
  }
  std::string Error(const std::string& pattern) {
    return Plain(Message(FindFiles("tar:x", Path(pattern))));
  }
};

TEST_F(FileListTest, AreSortedByTheirBytesAndNamedOnce) {
  for (const char* name : {"b.tar", "a.tar", "B.tar", ".c.tar", "d/a.tar", "d/e.txt"})
    Put(name, "x");
  EXPECT_EQ(Find("*.tar"), (Texts{"DIR/B.tar", "DIR/a.tar", "DIR/b.tar"}));
  EXPECT_EQ(Find("{b,a,?}.tar"), (Texts{"DIR/B.tar", "DIR/a.tar", "DIR/b.tar"}));
  EXPECT_EQ(Find("*/*.tar"), (Texts{"DIR/d/a.tar"}));
  EXPECT_EQ(Find("*"), (Texts{"DIR/B.tar", "DIR/a.tar", "DIR/b.tar"}));
}

TEST_F(FileListTest, AFileOfThatNameComesFirst) {
  Put("{a,b}*.tar", "x");
  Put("a1.tar", "x");
  EXPECT_EQ(Find("{a,b}*.tar"), Texts{"DIR/{a,b}*.tar"});
}

TEST_F(FileListTest, NothingIsAnError) {
  Put("a.tar", "x");
  Put("d/a.tar", "x");
  EXPECT_EQ(Error("*.tfrecord"), "data 'tar:x': no file matches DIR/*.tfrecord");
  EXPECT_EQ(Error("{a,b}.tar"), "data 'tar:x': there is no file DIR/b.tar");
  EXPECT_EQ(Error("d"), "data 'tar:x': DIR/d is a folder. hint: DIR/d/*");
}

std::string Sets(const Texts& files) {
  const auto sets = SplitFiles("tar:x", files);
  if (!sets.ok()) return sets.status().message();
  std::string text;
  for (const Texts& set : {sets->train, sets->validation, sets->test}) {
    for (const std::string& file : set) text += file + " ";
    text += "| ";
  }
  return text;
}

TEST(SplitFiles, ByTheWordsOfNamesAndFolders) {
  EXPECT_EQ(Sets({"a-train-0.tar", "a-val-0.tar", "A_TEST.tar"}),
            "a-train-0.tar | a-val-0.tar | A_TEST.tar | ");
  EXPECT_EQ(Sets({"d/train/0.tar", "d/valid/0.tar"}), "d/train/0.tar | d/valid/0.tar | | ");
  EXPECT_EQ(Sets({"training0", "validation0"}), "training0 | validation0 | | ");
}

TEST(SplitFiles, OneKindOfNamesIsOneSet) {
  EXPECT_EQ(Sets({"trains.tar", "latest.tar"}), "trains.tar latest.tar | | | ");
  EXPECT_EQ(Sets({"test-0.tar", "test-1.tar"}), "test-0.tar test-1.tar | | | ");
}

TEST(SplitFiles, RefusesAMixtureThatSaysTooLittle) {
  EXPECT_EQ(Sets({"train.tar", "more.tar"}),
            "data 'tar:x': more.tar is named after none of train, val and test, but other files "
            "are; a pattern of one kind of names is needed");
  EXPECT_EQ(Sets({"val.tar", "test.tar"}),
            "data 'tar:x': has files for validation (val.tar) and test (test.tar), none to train "
            "on");
}

}  // namespace
}  // namespace ridge
