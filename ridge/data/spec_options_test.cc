#include "ridge/data/spec_options.h"

#include "ridge/data/test_files.h"

namespace ridge {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

TEST(SpecOptions, AreKeysWithValuesBehindThePath) {
  const SpecOptions parsed = SplitSpecOptions("dir/a.csv,delimiter=tab,drop=x y,drop=b=c");
  EXPECT_EQ(parsed.path, "dir/a.csv");
  EXPECT_EQ(parsed.options, (Options{{"delimiter", "tab"}, {"drop", "x y"}, {"drop", "b=c"}}));
  EXPECT_EQ(SplitSpecOptions("a.csv").path, "a.csv");
  EXPECT_TRUE(SplitSpecOptions("a.csv").options.empty());
}

TEST(SpecOptions, APathMayHoldCommas) {
  EXPECT_EQ(SplitSpecOptions("a,b.csv,size=2").path, "a,b.csv");
  EXPECT_EQ(SplitSpecOptions("a,B=1.csv").path, "a,B=1.csv");
  TempFolder folder;
  const std::string path = folder.Write("t,size=2", "");
  EXPECT_EQ(SplitSpecOptions(path).path, path);
  const SpecOptions parsed = SplitSpecOptions(path + ",size=3");
  EXPECT_EQ(parsed.path, path);
  EXPECT_EQ(parsed.options, (Options{{"size", "3"}}));
}

}  // namespace
}  // namespace ridge
