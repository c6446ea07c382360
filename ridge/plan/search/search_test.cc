// What the search compares and what it takes: fewest slices, least recomputation that fits.
#include "ridge/plan/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/lower/test_kernels.h"

namespace ridge {
namespace {

// One kernel for every node.
class PlainKernels : public RowMajorKernels {
 public:
  const RewriteRules& rules() const override { return rules_; }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId>) override {
    KernelChoice choice;
    choice.kernel = choice.key = op.name;
    choice.input_layouts.assign(call.inputs.size(), kRowMajor);
    choice.output_layouts.assign(call.outputs.size(), kRowMajor);
    return {{choice}, {}};
  }

 private:
  const FusesNothing rules_{};
};

// Layers of gelu over `batch` / slices rows.
class Gelus : public JobGraphs {
 public:
  Gelus(int64_t batch, int64_t most_slices) : batch_(batch), most_slices_(most_slices) {}

  Result<std::vector<NamedGraph>> Training(int64_t slices) override {
    if (slices > most_slices_) return Status(ErrorCode::kUnsupported, "couples samples");
    GraphBuilder b("gelus");
    std::vector<Value> params;
    Value x = b.Input("x", {DType::kF32, {batch_ / slices, 64}});
    for (int i = 0; i < 6; ++i) {
      params.push_back(
          b.Parameter("w" + std::to_string(i), {DType::kF32, {64, 64}}, Init::Zeros()));
      x = Gelu(MatMul(x, params.back()));
    }
    const Value loss = Mean(Square(x));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> grads, AppendGradients(b, loss, params));
    for (size_t i = 0; i < grads.size(); ++i) b.Output("g" + std::to_string(i), grads[i]);
    RIDGE_ASSIGN_OR_RETURN(Graph graph, std::move(b).Build());
    NamedGraph train{"train", std::move(graph)};
    train.may_recompute = true;
    return std::vector<NamedGraph>{std::move(train)};
  }
  Result<std::vector<NamedGraph>> Evaluation(int64_t) override {
    ++evaluations;
    return std::vector<NamedGraph>();
  }

  int evaluations = 0;

 private:
  const int64_t batch_, most_slices_;
};

PlanChoice Search(JobGraphs& graphs, const PlanGoals& goals) {
  PlainKernels kernels;
  const PlanOptions options = {.on_host = PurposesOnHost(goals.offload)};
  Result<PlanChoice> choice = SearchPlan(
      graphs, {"gelus", *ParsePassSpec(""), DType::kF32, options}, kernels, TestCosts(), goals);
  EXPECT_TRUE(choice.ok()) << choice.status().message();
  const auto chosen = [](const PlanCandidate& c) { return c.chosen; };
  EXPECT_EQ(std::count_if(choice->candidates.begin(), choice->candidates.end(), chosen), 1);
  const auto at = std::find_if(choice->candidates.begin(), choice->candidates.end(), chosen);
  EXPECT_EQ(at->slices, choice->slices);
  EXPECT_EQ(at->recompute, choice->recompute);
  return *std::move(choice);
}

constexpr int64_t kBatch = 1 << 15;

TEST(SearchPlan, PlansWhatIsAskedFor) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  const PlanChoice choice = Search(graphs, {.batch = kBatch});
  ASSERT_EQ(choice.candidates.size(), 1U);
  EXPECT_GT(choice.candidates[0].bytes, choice.program.arena_bytes);
  EXPECT_GT(choice.candidates[0].seconds, 0);
  EXPECT_EQ(Search(graphs, {.recompute = RecomputeLimits{.any = true, .every = true}}).recompute,
            "all");
}

TEST(SearchPlan, ComparesSlicesUpToTheFirstThatCannotBe) {
  Gelus graphs(kBatch, /*most_slices=*/2);
  const PlanChoice choice = Search(graphs, {.slices = std::nullopt, .batch = kBatch});
  ASSERT_EQ(choice.candidates.size(), 2U);
  EXPECT_EQ(choice.candidates[1].slices, 2);
  EXPECT_LT(choice.candidates[1].bytes, choice.candidates[0].bytes);
  EXPECT_EQ(graphs.evaluations, 2);
}

// Slices for the caches are far more than memory asks for.
TEST(SearchPlan, ComparesTheFewestSlicesThatFit) {
  Gelus graphs(kBatch, /*most_slices=*/1024);
  const int64_t quarter = Search(graphs, {.slices = 4, .batch = kBatch}).candidates[0].bytes;
  const PlanChoice choice = Search(
      graphs, {.slices = std::nullopt, .batch = kBatch, .limit_bytes = quarter + quarter / 8});
  const auto fewest = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                   [](const PlanCandidate& c) { return c.slices == 4; });
  ASSERT_NE(fewest, choice.candidates.end());
  EXPECT_TRUE(fewest->fits);
}

TEST(SearchPlan, RecomputesWhereKeepingDoesNotFit) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  const int64_t kept = Search(graphs, {}).candidates[0].bytes;
  const PlanChoice choice = Search(graphs, {.recompute = std::nullopt, .limit_bytes = kept - 1});
  EXPECT_FALSE(choice.candidates[0].fits);
  EXPECT_EQ(choice.candidates[1].recompute, "all");
  EXPECT_NE(choice.recompute, "off");
  EXPECT_LT(choice.program.arena_bytes, kept);
}

// All six activations of the layers, or as many as the limit asks for.
TEST(SearchPlan, RecomputesNoMoreThanFits) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  const PlanCandidate kept = Search(graphs, {}).candidates[0];
  const PlanCandidate all =
      Search(graphs, {.recompute = RecomputeLimits{.any = true, .every = true}}).candidates[0];
  for (const int64_t percent : {10, 30, 50}) {
    const int64_t limit = kept.bytes - percent * (kept.bytes - all.bytes) / 100;
    const PlanChoice choice = Search(graphs, {.recompute = std::nullopt, .limit_bytes = limit});
    const auto taken = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                    [](const PlanCandidate& c) { return c.chosen; });
    EXPECT_TRUE(taken->fits) << percent;
    EXPECT_LT(taken->seconds, all.seconds) << percent;
    EXPECT_GT(taken->seconds, kept.seconds) << percent;
  }
}

TEST(SearchPlan, RecomputesWhereActivationsAreMostOfTheBytes) {
  const auto chosen = [](int64_t batch) {
    Gelus graphs(batch, /*most_slices=*/1);
    return Search(graphs, {.recompute = std::nullopt, .batch = batch});
  };
  const PlanChoice many = chosen(kBatch);
  ASSERT_EQ(many.candidates.size(), 2U);
  EXPECT_NE(many.recompute, "off");
  EXPECT_LT(many.candidates[1].bytes, many.candidates[0].bytes);
  const PlanChoice few = chosen(64);
  EXPECT_EQ(few.recompute, "off");
}

// Products that read a copy of x much faster; a copy takes `share` of x's bytes.
class CopyingKernels : public PlainKernels {
 public:
  explicit CopyingKernels(int64_t share) : share_(share) {}

  MemorySpace memory() override { return {.shared = false}; }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelCandidates all = PlainKernels::Candidates(op, call, available);
    if (op.name != "matmul") return all;
    all.choices.push_back(all.choices.front());
    all.choices.front().input_layouts[0] = 1;
    all.choices.back().efficiency = 1e-3;
    return all;
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return layout == kRowMajor ? type.bytes() : share_ * type.bytes();
  }
  KernelChoice Reorder(const TensorType&, LayoutId from, LayoutId to) override {
    KernelChoice choice;
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    return choice;
  }

 private:
  const int64_t share_;
};

// Of a plan that copies take part in.
bool Copies(int64_t share, int64_t limit_bytes = INT64_MAX) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  CopyingKernels kernels(share);
  const Result<PlanChoice> choice =
      SearchPlan(graphs, {"gelus", *ParsePassSpec(""), DType::kF32, {}}, kernels, TestCosts(),
                 {.batch = kBatch, .limit_bytes = limit_bytes});
  EXPECT_TRUE(choice.ok()) << choice.status().message();
  const std::vector<PlannedNode>& nodes = choice->program.steps.front().nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const PlannedNode& node) { return node.op == "reorder"; });
}

TEST(SearchPlan, CopiesAreMadeWhereTheySaveMoreThanTheyCost) {
  EXPECT_TRUE(Copies(/*share=*/1));
  EXPECT_FALSE(Copies(/*share=*/10'000)) << "more bytes than seconds";
}

TEST(SearchPlan, CopiesThatDoNotFitAreNotMade) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  const int64_t row_major = Search(graphs, {}).candidates[0].bytes;
  EXPECT_FALSE(Copies(/*share=*/1, row_major));
}

// Parameters of six layers of 64 x 64.
constexpr int64_t kParameterBytes = 6 * 64 * 64 * 4;

TEST(SearchPlan, WhatRestsOnTheHostLeavesItsBytesToActivations) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  PlanGoals goals = {.recompute = std::nullopt};
  goals.limit_bytes = Search(graphs, {}).candidates[0].bytes - kParameterBytes / 2;
  EXPECT_NE(Search(graphs, goals).recompute, "off");
  goals.offload = Offload::kAll;
  goals.host_link_bytes_per_s = 1e12;
  const PlanChoice choice = Search(graphs, goals);
  EXPECT_TRUE(choice.candidates[0].fits);
}

TEST(SearchPlan, AStepIsNoFasterThanItsTransfers) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  PlanGoals goals = {.offload = Offload::kAll, .host_link_bytes_per_s = 1e3};
  EXPECT_GE(Search(graphs, goals).candidates[0].seconds, kParameterBytes / 1e3);
}

TEST(SearchPlan, NamesTheLeastWhereNothingFits) {
  Gelus graphs(kBatch, /*most_slices=*/1);
  const PlanChoice choice = Search(graphs, {.recompute = std::nullopt, .limit_bytes = 1});
  for (const PlanCandidate& c : choice.candidates) {
    EXPECT_FALSE(c.fits);
    if (c.chosen) {
      for (const PlanCandidate& other : choice.candidates) EXPECT_LE(c.bytes, other.bytes);
    }
  }
}

// Logits of `rows` rows by one product, with both of its gradients.
class Head : public JobGraphs {
 public:
  explicit Head(int64_t rows, int64_t hidden = 64) : rows_(rows), hidden_(hidden) {}

  Result<std::vector<NamedGraph>> Training(int64_t slices) override {
    constexpr int64_t kClasses = 4096;
    const int64_t rows = rows_ / slices;
    GraphBuilder b("head");
    const Value v = b.Parameter("v", {DType::kF32, {hidden_, hidden_}}, Init::Zeros());
    const Value w = b.Parameter("w", {DType::kF32, {hidden_, kClasses}}, Init::Zeros());
    const Value x = MatMul(b.Input("x", {DType::kF32, {rows, hidden_}}), v);
    const Value label = b.Input("label", {DType::kI64, {rows}});
    const Value losses = Op("softmax_cross_entropy", {MatMul(x, w), label});
    const std::vector<Value> params = {v, w};
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> grads,
                           AppendGradients(b, Mean(losses), params));
    b.Output("losses", losses);
    b.Output("dv", grads[0]);
    b.Output("dw", grads[1]);
    RIDGE_ASSIGN_OR_RETURN(Graph graph, std::move(b).Build());
    NamedGraph train{"train", std::move(graph)};
    train.may_recompute = true;
    return std::vector<NamedGraph>{std::move(train)};
  }
  Result<std::vector<NamedGraph>> Evaluation(int64_t) override { return std::vector<NamedGraph>(); }

 private:
  const int64_t rows_, hidden_;
};

// Memory of the run alone, or that others use, too.
class MemoryOf : public PlainKernels {
 public:
  explicit MemoryOf(bool shared) : shared_(shared) {}
  MemorySpace memory() override { return {.shared = shared_}; }

 private:
  const bool shared_;
};

Result<PlanChoice> SearchHead(Head head, bool shared, const PlanGoals& goals) {
  MemoryOf kernels(shared);
  return SearchPlan(head, {"head", *ParsePassSpec(""), DType::kF32, {}}, kernels, TestCosts(),
                    goals);
}

constexpr int64_t kRows = 1 << 14;

TEST(SearchPlan, CutsLogitsInMemoryOfTheRunAlone) {
  const Result<PlanChoice> choice =
      SearchHead(Head(kRows), /*shared=*/false, {.loss_chunks = std::nullopt});
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_GT(choice->loss_chunks, 1);
  EXPECT_EQ(choice->candidates.front().loss_chunks, 1);
  EXPECT_LT(2 * choice->program.arena_bytes, choice->candidates.front().bytes);
  const auto chosen = std::find_if(choice->candidates.begin(), choice->candidates.end(),
                                   [](const PlanCandidate& c) { return c.chosen; });
  EXPECT_EQ(chosen->loss_chunks, choice->loss_chunks);
}

// Chunks are those of the batch: a slice has its share of them.
TEST(SearchPlan, CutsTheLogitsOfSlices) {
  const PlanGoals goals = {.slices = 4, .loss_chunks = std::nullopt, .batch = kRows};
  const Result<PlanChoice> choice = SearchHead(Head(kRows), /*shared=*/false, goals);
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_GE(choice->loss_chunks, 16);
  EXPECT_EQ(choice->loss_chunks % 4, 0);
  EXPECT_LT(2 * choice->program.arena_bytes, choice->candidates.front().bytes);
}

TEST(SearchPlan, CandidatesStandInTheOrderOfPlanning) {
  const Result<PlanChoice> choice =
      SearchHead(Head(kRows), /*shared=*/false, {.loss_chunks = std::nullopt});
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  ASSERT_GE(choice->candidates.size(), 3U);
  for (size_t i = 1; i < choice->candidates.size(); ++i)
    EXPECT_GT(choice->candidates[i].loss_chunks, choice->candidates[i - 1].loss_chunks);
}

// A budget is a share of what the step takes with whole logits.
TEST(SearchPlan, ChunksCountTowardsABudget) {
  PlanGoals goals = {.loss_chunks = std::nullopt};
  goals.budget = ScratchBudget{.share = 0.5};
  const Result<PlanChoice> choice = SearchHead(Head(kRows), /*shared=*/false, goals);
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_GT(choice->loss_chunks, 1);
  EXPECT_EQ(choice->recompute, "off");
}

// Gradients of large weights are added up for few bytes of logits.
TEST(SearchPlan, LeavesLogitsWholeWhereChunksCostMoreThanTheyFree) {
  const Result<PlanChoice> choice = SearchHead(Head(/*rows=*/256, /*hidden=*/512),
                                               /*shared=*/false, {.loss_chunks = std::nullopt});
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(choice->loss_chunks, 1);
}

TEST(SearchPlan, CutsLogitsInSharedMemoryWhereTheyDoNotFit) {
  PlanGoals goals = {.loss_chunks = std::nullopt};
  const Result<PlanChoice> whole = SearchHead(Head(kRows), /*shared=*/true, goals);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->loss_chunks, 1);
  goals.limit_bytes = whole->candidates.front().bytes / 2;
  const Result<PlanChoice> cut = SearchHead(Head(kRows), /*shared=*/true, goals);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  EXPECT_GT(cut->loss_chunks, 1);
  EXPECT_LE(cut->candidates.back().bytes, goals.limit_bytes);
}

TEST(SearchPlan, RefusesChunksThatRowsCannotBeCutInto) {
  EXPECT_EQ(SearchHead(Head(/*rows=*/12), /*shared=*/true, {.loss_chunks = 5}).status().message(),
            "--loss-chunks is 5; the 12 rows of logits cannot be cut so. hint: --loss-chunks 6");
  Gelus graphs(kBatch, /*most_slices=*/1);
  PlainKernels kernels;
  EXPECT_EQ(SearchPlan(graphs, {"gelus", *ParsePassSpec(""), DType::kF32, {}}, kernels, TestCosts(),
                       {.loss_chunks = 2})
                .status()
                .message(),
            "--loss-chunks is 2; no logits of a cross entropy come from a product and are read row "
            "by row only. hint: leave it out");
}

}  // namespace
}  // namespace ridge
