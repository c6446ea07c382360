// Cuts against all that are possible, and what is refused.
#include "ridge/pipeline/cuts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ridge/models/model.h"
#include "tests/pipeline/whole_step.h"

namespace ridge {
namespace {

constexpr int kChunks = 3;

Result<WholeStep> StepOf(const std::string& spec) {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, BuildModel(spec, {.batch = 2}));
  return MakeWholeStep(forward, /*micros=*/4, {.optimizer = "adam"});
}

std::vector<double> RandomSeconds(size_t nodes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> seconds(nodes);
  for (double& s : seconds) s = static_cast<double>(random() % 1000);
  return seconds;
}

struct Quality {
  double largest_s = 0, bytes = 0;
  int64_t most_bytes = 0;  // of a chunk
};

Quality QualityOf(const StageCosts& costs, const CutRequest& request,
                  const std::vector<int>& borders) {
  Quality quality;
  for (size_t c = 0; c <= borders.size(); ++c) {
    const int begin = c == 0 ? 0 : borders[c - 1];
    const int end = c == borders.size() ? costs.positions() : borders[c];
    quality.largest_s = std::max(quality.largest_s, costs.Seconds(begin, end));
    if (c > 0)
      quality.bytes += static_cast<double>(costs.ForwardBytes(begin) + costs.BackwardBytes(begin));
    quality.most_bytes =
        std::max(quality.most_bytes,
                 costs.StateBytes(begin, end) +
                     request.kept_micros[c] * costs.KeptBytes(begin)[static_cast<size_t>(end)]);
  }
  return quality;
}

std::vector<std::vector<int>> AllCuts(const StageCosts& costs) {
  std::vector<std::vector<int>> cuts;
  for (int a = 1; a < costs.positions(); ++a)
    for (int b = a + 1; b < costs.positions(); ++b)
      if (costs.SharedAt(a).empty() && costs.SharedAt(b).empty()) cuts.push_back({a, b});
  return cuts;
}

void ExpectBest(const StageCosts& costs, const CutRequest& request) {
  const auto fits = [&](const Quality& q) {
    return request.limit_bytes.empty() || q.most_bytes <= request.limit_bytes[0];
  };
  double least_s = INFINITY, fewest = INFINITY;
  for (const std::vector<int>& cut : AllCuts(costs)) {
    const Quality q = QualityOf(costs, request, cut);
    if (fits(q)) least_s = std::min(least_s, q.largest_s);
  }
  for (const std::vector<int>& cut : AllCuts(costs)) {
    const Quality q = QualityOf(costs, request, cut);
    if (fits(q) && q.largest_s <= 1.05 * least_s) fewest = std::min(fewest, q.bytes);
  }
  const Result<std::vector<int>> chosen = ChooseCuts(costs, request);
  ASSERT_EQ(chosen.ok(), std::isfinite(least_s));
  if (!chosen.ok()) {
    EXPECT_EQ(chosen.status().code(), ErrorCode::kOutOfMemory);
    return;
  }
  const Quality q = QualityOf(costs, request, *chosen);
  EXPECT_TRUE(fits(q));
  EXPECT_LE(q.largest_s, 1.05 * least_s);
  EXPECT_EQ(q.bytes, fewest);
}

TEST(Cuts, AreTheBestOfAll) {
  const Result<WholeStep> step = StepOf("cnn");
  ASSERT_TRUE(step.ok()) << step.status().message();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const StageCosts costs(step->untied.micro, step->untied.update, step->untied.places,
                           RandomSeconds(step->untied.micro.nodes().size(), seed));
    CutRequest request{kChunks, {3, 2, 1}};
    const Result<std::vector<int>> any = ChooseCuts(costs, request);
    ASSERT_TRUE(any.ok()) << any.status().message();
    const int64_t most = QualityOf(costs, request, *any).most_bytes;
    ExpectBest(costs, request);
    for (int64_t limit : {most, most - 1, most / 2, int64_t{1}}) {
      request.limit_bytes.assign(kChunks, limit);
      ExpectBest(costs, request);
    }
  }
}

std::string Refused(const std::string& spec, int chunks, int64_t limit_bytes) {
  const Result<WholeStep> step = StepOf(spec);
  if (!step.ok()) return step.status().message();
  const StageCosts costs(step->untied.micro, step->untied.update, step->untied.places,
                         std::vector<double>(step->untied.micro.nodes().size(), 1));
  CutRequest request{chunks, std::vector<int64_t>(static_cast<size_t>(chunks), 1)};
  if (limit_bytes > 0) request.limit_bytes.assign(static_cast<size_t>(chunks), limit_bytes);
  return ChooseCuts(costs, request).status().message();
}

TEST(Cuts, RefuseWhatIsThereAgainstWhatShouldBe) {
  EXPECT_EQ(Refused("mlp", 100, 0),
            "pipeline: 100 stages are asked for; the model has 7 nodes to cut between. hint: a "
            "smaller p, or fewer chunks a device");
  EXPECT_EQ(Refused("gpt:layers=1", 2, 1000),
            "pipeline: the largest of 2 stages needs at least 58.6 MiB for its state and what it "
            "keeps; 1000 B are allowed. hint: a larger p, or a smaller --batch");
}

}  // namespace
}  // namespace ridge
