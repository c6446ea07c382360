#include "ridge/train/job/job_data.h"

#include <gtest/gtest.h>

#include "ridge/models/model.h"

namespace ridge {
namespace {

TEST(JobDataTest, SyntheticTokensCoverTheVocabulary) {
  const Result<Graph> gpt = BuildModel("gpt:vocab=40,context=16,hidden=8,layers=1,heads=1");
  ASSERT_TRUE(gpt.ok());
  const Result<ForwardInfo> facts = InspectForward(*gpt);
  ASSERT_TRUE(facts.ok());
  const Result<DataSplits> data = OpenData("synthetic", DataOptionsOf(*gpt, *facts, /*seed=*/1));
  ASSERT_TRUE(data.ok());
  std::vector<int64_t> tokens(16);
  int64_t largest = 0;
  for (int64_t sample = 0; sample < 50; ++sample) {
    for (int field = 0; field < 2; ++field) {
      ASSERT_TRUE(data->train->ReadOne(sample, field, tokens.data()).ok());
      for (int64_t token : tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LT(token, 40);
        largest = std::max(largest, token);
      }
    }
  }
  EXPECT_EQ(largest, 39);
}

}  // namespace
}  // namespace ridge
