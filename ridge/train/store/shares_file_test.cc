#include "ridge/train/store/shares_file.h"

#include <gtest/gtest.h>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

TEST(SharesFileTest, TheNewestForSoManyRanksCounts) {
  const TempFolder folder;
  const std::string path = folder.File(kSharesFile);
  EXPECT_FALSE(NewestShares(path, 2, 8));
  ASSERT_TRUE(AddShares(path, {50, {5, 3}, {4, 4}, {0.1, 0.2}}).ok());
  ASSERT_TRUE(AddShares(path, {100, {6, 2}, {5, 3}, {0.1, 0.2}}).ok());
  ASSERT_TRUE(AddShares(path, {150, {4, 2, 2}, {3, 3, 2}, {0.1, 0.2, 0.2}}).ok());
  EXPECT_EQ(NewestShares(path, 2, 8), (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(NewestShares(path, 3, 8), (std::vector<int64_t>{4, 2, 2}));
  EXPECT_FALSE(NewestShares(path, 4, 8));
  EXPECT_FALSE(NewestShares(path, 2, 16));
}

TEST(SharesFileTest, LinesThatAreNoDealsAreSkipped) {
  const TempFolder folder;
  const std::string path = folder.Write("shares.jsonl",
                                        "{\"slices\":[6,2]}\n[]\n{\"slices\":[0,8]}\n"
                                        "{\"slices\":\"all\"}\n{\"slices\":[1,7");
  EXPECT_EQ(NewestShares(path, 2, 8), (std::vector<int64_t>{6, 2}));
}

}  // namespace
}  // namespace ridge
