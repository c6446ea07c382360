// Which products are marked, and that mixed precision then leaves them and their gradients in f32.
#include "ridge/learn/precision_for.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ridge/graph/keep_f32.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/learn/frozen_weights.h"
#include "ridge/learn/lora.h"
#include "ridge/learn/training_graph.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/reduced_groups.h"
#include "ridge/lower/reduced_storage.h"
#include "ridge/lower/test_kernels.h"

namespace ridge {
namespace {

Graph Parse(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : Graph();
}

std::vector<PrecisionFor> Patterns(const std::string& text) {
  Result<std::vector<PrecisionFor>> patterns = ParsePrecisionFor({text}, "bf16");
  EXPECT_TRUE(patterns.ok()) << patterns.status().message();
  return patterns.ok() ? *patterns : std::vector<PrecisionFor>();
}

Graph Kept(const Graph& graph, const std::string& patterns) {
  Result<Graph> kept = WithPrecisionFor(graph, Patterns(patterns));
  EXPECT_TRUE(kept.ok()) << kept.status().message();
  if (!kept.ok()) return Graph();
  EXPECT_TRUE(CheckGraph(*kept).ok()) << CheckGraph(*kept).message();
  return *std::move(kept);
}

// The first outputs of marked nodes.
std::vector<std::string> NamesKept(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (KeepsF32(node.attrs)) names.push_back(graph.value(node.outputs[0]).name);
  }
  return names;
}

using Names = std::vector<std::string>;

Names NamesNarrowed(const Graph& graph) {
  Names names;
  for (const Node& node : graph.nodes()) {
    if (HasNarrowResult(node.attrs)) names.push_back(graph.value(node.outputs[0]).name);
  }
  return names;
}

// A tied table, a weight behind views and casts, one of several that are joined, and products of
// activations.
constexpr char kNet[] = R"(graph net
  ids = input i64[8]
  table = parameter f32[64,32] init=normal(1.0)
  up.weight = parameter f32[32,32] init=normal(1.0)
  up.bias = parameter f32[32] init=zeros
  q.weight = parameter f32[16,32] init=normal(1.0)
  k.weight = parameter f32[16,32] init=normal(1.0)
  norm.weight = parameter f32[32] init=constant(1.0)
  x = gather(table, ids)
  n = mul(x, norm.weight)
  up.half = cast(up.weight, to="f16")
  up.again = cast(up.half, to="f32")
  up.turned = transpose(up.again, permutation=[1,0])
  u = matmul(n, up.turned, up.bias)
  qk.weight = concat(q.weight, k.weight, axis=0)
  qk = matmul(u, qk.weight, transpose_b=1)
  scores = matmul(qk, qk, transpose_b=1)
  mixed = matmul(scores, u)
  head = matmul(mixed, table, transpose_b=1)
  output head
)";

TEST(WithPrecisionFor, MarksWhatReadsTheParameterThroughCastsViewsAndConcat) {
  const Graph net = Parse(kNet);
  EXPECT_EQ(NamesKept(Kept(net, "up.*=f32")), Names{"u"});
  EXPECT_EQ(NamesKept(Kept(net, "k.*=f32")), Names{"qk"});
  EXPECT_EQ(NamesKept(Kept(net, "up.bias=f32")), Names{"u"});
}

TEST(WithPrecisionFor, DoNotTakeALookUpForAWeight) {
  EXPECT_EQ(NamesKept(Kept(Parse(kNet), "table=f32")), Names{"head"});
}

TEST(WithPrecisionFor, MarksProductsOfActivationsByTheirOwnNames) {
  const Graph net = Parse(kNet);
  EXPECT_EQ(NamesKept(Kept(net, "scores=f32")), Names{"scores"});
  EXPECT_EQ(NamesKept(Kept(net, "mix*=f32,up.*=f32")), (Names{"u", "mixed"}));
  EXPECT_EQ(NamesKept(Kept(net, "*=f32")), (Names{"u", "qk", "scores", "mixed", "head"}));
}

TEST(WithPrecisionFor, TheFirstPatternThatMatchesDecides) {
  const Graph net = Parse(kNet);
  EXPECT_EQ(NamesKept(Kept(net, "table=bf16,*=f32")), (Names{"u", "qk", "scores", "mixed"}));
  EXPECT_EQ(NamesKept(Kept(net, "*=f32,table=bf16")),
            (Names{"u", "qk", "scores", "mixed", "head"}));
}

TEST(WithPrecisionFor, MarksResultsByPatternsOfTheRunsOwnType) {
  const Graph net = Kept(Parse(kNet), "table=bf16,*=f32");
  EXPECT_EQ(NamesNarrowed(net), Names{"head"});
  EXPECT_EQ(NamesNarrowed(Kept(Parse(kNet), "*=f32,table=bf16")), Names{});
}

TEST(WithPrecisionFor, ChangesNothingButTheMark) {
  std::string text = PrintGraph(Kept(Parse(kNet), "up.*=f32"));
  const std::string mark = "u = matmul(n, up.turned, up.bias, keep_f32=1)";
  const size_t at = text.find(mark);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, mark.size(), "u = matmul(n, up.turned, up.bias)");
  EXPECT_EQ(text, PrintGraph(Parse(kNet)));
}

// A weight of 4 bits is known by the name that it had; adapters beside it have names of their own.
TEST(WithPrecisionFor, FindsDequantizedWeightsAndAdapters) {
  Graph net = Parse(
      "graph net\n"
      "  x = input f32[8,64]\n"
      "  head.weight = parameter f32[96,64] init=normal(0.1)\n"
      "  y = matmul(x, head.weight, transpose_b=1)\n"
      "  output y\n");
  const Result<LoraOptions> lora = ParseLora("rank=2");
  ASSERT_TRUE(lora.ok()) << lora.status().message();
  const Result<Graph> adapted = WithLora(net, *lora, {});
  ASSERT_TRUE(adapted.ok()) << adapted.status().message();
  const Result<Graph> small = WithFrozenWeights(*adapted, {.nf4 = true});
  ASSERT_TRUE(small.ok()) << small.status().message();
  EXPECT_EQ(NamesKept(Kept(*small, "head.weight=f32")).size(), 1u);
  EXPECT_EQ(NamesKept(Kept(*small, "head.*=f32")).size(), 3u);
}

TEST(WithPrecisionFor, LeavesProductsOfOtherTypes) {
  const Graph net = Parse(
      "graph net\n"
      "  x = input f64[8,8]\n"
      "  z = input f32[8,8]\n"
      "  a = parameter f64[8,8] init=normal(0.1)\n"
      "  b = parameter f32[8,8] init=normal(0.1)\n"
      "  y = matmul(x, a)\n"
      "  v = matmul(z, b)\n"
      "  output y\n"
      "  output v\n");
  EXPECT_EQ(NamesKept(Kept(net, "*=f32")), Names{"v"});
}

TEST(WithPrecisionFor, APatternWithoutAParameterNamesTheNearest) {
  EXPECT_EQ(
      WithPrecisionFor(Parse(kNet), Patterns("upp.*=f32")).status().message(),
      "net: --precision-for 'upp.*' matches no parameter; the nearest are up.weight, up.bias, "
      "q.weight. hint: --precision-for 'up.*=f32'");
  EXPECT_EQ(
      WithPrecisionFor(Parse("graph net\n  x = input f32[2,2]\n  output x\n"), Patterns("w=f32"))
          .status()
          .message(),
      "net: --precision-for 'w' matches no parameter: there is none");
}

TEST(WithPrecisionFor, APatternOfParametersThatNoProductReadsSaysSo) {
  EXPECT_EQ(WithPrecisionFor(Parse(kNet), Patterns("norm.*=f32")).status().message(),
            "net: --precision-for 'norm.*' matches norm.weight, of which no product of f32 reads "
            "any. hint: leave the pattern out");
}

TEST(ParsePrecisionFor, APatternAndF32OrTheRunsOwnType) {
  const auto patterns = ParsePrecisionFor({"a=f32,b=c.*=bf16", "d=f32"}, "bf16");
  ASSERT_TRUE(patterns.ok()) << patterns.status().message();
  ASSERT_EQ(patterns->size(), 3u);
  EXPECT_EQ(patterns->at(1).pattern, "b=c.*");
  EXPECT_FALSE(patterns->at(1).keeps_f32);
  EXPECT_TRUE(patterns->at(2).keeps_f32);
  EXPECT_EQ(ParsePrecisionFor({"head.*"}, "bf16").status().message(),
            "--precision-for is 'head.*': 'head.*' is not PATTERN=f32. hint: --precision-for "
            "'head.*=f32'");
  EXPECT_EQ(ParsePrecisionFor({"a=f32,=f32"}, "bf16").status().message(),
            "--precision-for is 'a=f32,=f32': '=f32' is not PATTERN=f32. hint: --precision-for "
            "'head.*=f32'");
  EXPECT_EQ(ParsePrecisionFor({"a=f16"}, "bf16").status().message(),
            "--precision-for is 'a=f16': 'a=f16' is of type 'f16'; it must be f32, or bf16 as "
            "--precision has it. hint: --precision-for 'head.*=f32'");
  EXPECT_EQ(ParsePrecisionFor({"a=auto"}, "auto").status().message(),
            "--precision-for is 'a=auto': 'a=auto' is of type 'auto'; it must be f32. hint: "
            "--precision-for 'head.*=f32'");
}

// ---- what mixed precision makes of the marks

// What devices store in 16 bits.
class UsualRules : public TestRules {
 public:
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    return UsualReducedGroups(op);
  }
};

class Kernels : public RowMajorKernels {
 public:
  const RewriteRules& rules() const override {
    static const UsualRules rules;
    return rules;
  }
  KernelCandidates Candidates(const OpDef&, const OpCall&, std::span<const LayoutId>) override {
    return {{KernelChoice()}, {}};
  }
};

// The graph of a training step, as it is planned.
Graph Step(const Graph& forward, DType operands) {
  const auto graphs = BuildTrainingGraphs(forward, {});
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
  if (!graphs.ok()) return Graph();
  Kernels kernels;
  const StepRewrites rewrites = {*ParsePassSpec(""), operands, /*recompute=*/nullptr};
  const Result<Graph> step = RewriteStep((*graphs)[0].graph, rewrites, kernels);
  EXPECT_TRUE(step.ok()) << step.status().message();
  return step.ok() ? *step : Graph();
}

bool TouchesBf16(const Graph& graph, const Node& node) {
  const auto is_bf16 = [&](ValueId id) {
    return id != kNoValue && graph.type(id).dtype == DType::kBF16;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_bf16) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_bf16);
}

// A value that was 16 bits between its producer and this reader.
bool ReadsRounded(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return graph.producer(id, "cast") != nullptr; });
}

// Two layers of the same form behind x, of which `second` may be kept, and a loss that is large.
std::string TwoLayers(const std::string& layers) {
  return "graph net\n" + layers +
         "  gap = square(y)\n"
         "  loss = reduce_mean(gap)\n"
         "  output loss\n";
}

const std::map<std::string, std::string>& Nets() {
  static const std::map<std::string, std::string> nets = {
      {"matmul", TwoLayers(R"(  x = input f32[batch=128,256]
  body.weight = parameter f32[256,256] init=normal(0.1)
  head.weight = parameter f32[256,256] init=normal(0.1)
  head.bias = parameter f32[256] init=zeros
  h = matmul(x, body.weight, transpose_b=1)
  r = relu(h)
  z = matmul(r, head.weight, head.bias, transpose_b=1)
  y = tanh(z)
)")},
      {"conv", TwoLayers(R"(  x = input f32[batch=4,64,16,16]
  body.weight = parameter f32[64,64,3,3] init=normal(0.1)
  head.weight = parameter f32[64,64,3,3] init=normal(0.1)
  head.bias = parameter f32[64] init=zeros
  h = conv(x, body.weight, padding=[1,1,1,1])
  r = relu(h)
  z = conv(r, head.weight, head.bias, padding=[1,1,1,1])
  y = tanh(z)
)")},
      {"conv_pool", TwoLayers(R"(  x = input f32[batch=4,64,16,16]
  body.weight = parameter f32[64,64,3,3] init=normal(0.1)
  head.weight = parameter f32[64,64,3,3] init=normal(0.1)
  h = conv(x, body.weight, padding=[1,1,1,1])
  r = relu(h)
  z = conv(r, head.weight, padding=[1,1,1,1])
  s = relu(z)
  y, where = max_pool(s, kernel=[2,2], stride=[2,2])
)")},
      {"attention", TwoLayers(R"(  x = input f32[batch=4,64,128]
  body.weight = parameter f32[128,128] init=normal(0.1)
  h = matmul(x, body.weight, transpose_b=1)
  rows = reshape(h, dims=[4,64,4,32])
  heads = transpose(rows, permutation=[0,2,1,3])
  shown = tanh(heads)
  head.scores, lse = attention(shown, heads, shown, scale=0.2)
  turned = transpose(head.scores, permutation=[0,2,1,3])
  joined = reshape(turned, dims=[4,64,128])
  tail.weight = parameter f32[128,128] init=normal(0.1)
  z = matmul(joined, tail.weight, transpose_b=1)
  y = tanh(z)
)")},
      {"lstm", TwoLayers(R"(  x = input f32[batch=64,128]
  body.weight = parameter f32[128,128] init=normal(0.1)
  head.weight = parameter f32[128,32] init=normal(0.1)
  first = state f32[8,32] init=zeros
  h = matmul(x, body.weight, transpose_b=1)
  steps = reshape(h, dims=[8,8,128])
  y, c, gates = lstm(steps, head.weight, first, first)
)")},
  };
  return nets;
}

class KeptProducts : public testing::TestWithParam<std::string> {
 protected:
  Graph Net() const { return Parse(Nets().at(GetParam())); }
};

TEST_P(KeptProducts, AreInF32ForwardAndBackwardAndReadNothingThatWasRounded) {
  const Graph step = Step(Kept(Net(), "head.*=f32"), DType::kBF16);
  int kept = 0, narrow = 0;
  for (const Node& node : step.nodes()) {
    if (!IsKeepable(*node.op)) continue;
    if (!KeepsF32(node.attrs)) {
      narrow += TouchesBf16(step, node) ? 1 : 0;
      continue;
    }
    ++kept;
    EXPECT_FALSE(TouchesBf16(step, node)) << step.Where(node) << "\n" << PrintGraph(step);
    EXPECT_FALSE(ReadsRounded(step, node)) << step.Where(node) << "\n" << PrintGraph(step);
  }
  EXPECT_GE(kept, 2) << PrintGraph(step);    // the gradient's too
  EXPECT_GE(narrow, 2) << PrintGraph(step);  // the other layer, and its gradient
}

TEST_P(KeptProducts, AreAllThatTheGradientHas) {
  const auto graphs = BuildTrainingGraphs(Kept(Net(), "*=f32"), {});
  ASSERT_TRUE(graphs.ok()) << graphs.status().message();
  EXPECT_TRUE(KeepsEachProduct((*graphs)[0].graph)) << PrintGraph((*graphs)[0].graph);
}

TEST_P(KeptProducts, WhereEachIsKeptTheStepIsThatOfF32) {
  const Graph net = Kept(Net(), "*=f32");
  EXPECT_EQ(PrintGraph(Step(net, DType::kBF16)), PrintGraph(Step(net, DType::kF32)));
  EXPECT_NE(PrintGraph(Step(Net(), DType::kBF16)), PrintGraph(Step(Net(), DType::kF32)));
}

INSTANTIATE_TEST_SUITE_P(Products, KeptProducts,
                         testing::Values("matmul", "conv", "conv_pool", "attention", "lstm"),
                         [](const auto& info) { return info.param; });

// ---- logits of 16 bits

// A classifier whose head's result goes through views into a loss, and to the user.
constexpr char kClassifier[] = R"(graph net
  x = input f32[batch=64,256]
  label = input i64[batch=64,2]
  body.weight = parameter f32[256,256] init=normal(0.1)
  head.weight = parameter f32[1024,256] init=normal(0.1)
  h = matmul(x, body.weight, transpose_b=1)
  r = relu(h)
  z = matmul(r, head.weight, transpose_b=1)
  logits = reshape(z, dims=[64,2,512])
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output loss
)";

DType DTypeOf(const Graph& graph, const char* name) {
  const ValueId id = graph.FindValue(name);
  EXPECT_NE(id, kNoValue) << name << "\n" << PrintGraph(graph);
  return id == kNoValue ? DType::kBool : graph.type(id).dtype;
}

TEST(NarrowResults, AreStoredIn16BitsAndReadByLossAndGradient) {
  const Graph step = Step(Kept(Parse(kClassifier), "head.*=bf16"), DType::kBF16);
  EXPECT_EQ(DTypeOf(step, "z"), DType::kBF16);
  EXPECT_EQ(DTypeOf(step, "logits"), DType::kBF16);
  EXPECT_EQ(DTypeOf(step, "losses"), DType::kF32);
  int gradients = 0;
  for (const Node& node : step.nodes()) {
    if (node.op->name != "softmax_cross_entropy_grad") continue;
    ++gradients;
    EXPECT_EQ(step.type(node.inputs[0]).dtype, DType::kBF16) << PrintGraph(step);
    EXPECT_EQ(step.type(node.outputs[0]).dtype, DType::kBF16) << PrintGraph(step);
  }
  EXPECT_EQ(gradients, 1);
  for (const GraphUpdate& update : step.updates())
    EXPECT_NE(step.type(update.value).dtype, DType::kBF16);
}

TEST(NarrowResults, AreF32WhereNoPatternNamesThem) {
  for (const char* patterns : {"body.*=bf16", "body.*=f32"}) {
    const Graph step = Step(Kept(Parse(kClassifier), patterns), DType::kBF16);
    EXPECT_EQ(DTypeOf(step, "logits"), DType::kF32) << PrintGraph(step);
  }
  EXPECT_EQ(PrintGraph(Step(Kept(Parse(kClassifier), "head.*=bf16"), DType::kF32)).find("bf16"),
            std::string::npos);
}

// What users get is f32; a step computed from the logits, such as a cap on them, is too.
TEST(NarrowResults, LeaveTheGraphAsF32) {
  const Graph net = Parse(R"(graph net
  x = input f32[batch=64,256]
  head.weight = parameter f32[1024,256] init=normal(0.1)
  z = matmul(x, head.weight, transpose_b=1)
  t = tanh(z)
  u = exp(z)
  v = square(z)
  output z
  output t
  output u
  output v
)");
  Kernels kernels;
  const Result<Graph> step = RewriteStep(Kept(net, "head.*=bf16"),
                                         {*ParsePassSpec("-fuse"), DType::kBF16, nullptr}, kernels);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const Result<Graph> stored = AutocastActivations(*step, DType::kBF16, kernels);
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  ASSERT_TRUE(CheckGraph(*stored).ok()) << PrintGraph(*stored);
  for (const GraphOutput& output : stored->outputs())
    EXPECT_EQ(stored->type(output.value).dtype, DType::kF32) << PrintGraph(*stored);
  const Node* cast = stored->producer(stored->FindOutput("z"), "cast");
  ASSERT_NE(cast, nullptr) << PrintGraph(*stored);
  EXPECT_EQ(stored->type(cast->inputs[0]).dtype, DType::kBF16);
}

// The scores of a trained mask are made whole in the gradient.
TEST(KeptProductsOfAMask, AreAllThatTheGradientHas) {
  const Graph net = Parse(TwoLayers(R"(  x = input f32[batch=4,4,16,8]
  head.mask = parameter f32[16,16] init=zeros
  y, lse = attention(x, x, x, head.mask, scale=0.2)
)"));
  const auto graphs = BuildTrainingGraphs(Kept(net, "head.*=f32"), {});
  ASSERT_TRUE(graphs.ok()) << graphs.status().message();
  EXPECT_TRUE(KeepsEachProduct((*graphs)[0].graph)) << PrintGraph((*graphs)[0].graph);
}

TEST(KeptProductsOfAPattern, MakeAnAttentionThatIsKept) {
  const Graph net = Parse(R"(graph net
  q = input f32[2,4,16,8]
  k = input f32[2,4,8,16]
  v = input f32[2,4,16,8]
  s = matmul(q, k)
  p = softmax(s)
  y = matmul(p, v)
  output y
)");
  for (const char* pattern : {"s=f32", "y=f32"}) {
    const Result<Graph> found =
        RunPasses(Kept(net, pattern), *ParsePassSpec("only:attention"), UnlimitedRules());
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(NamesKept(*found), Names{"y"}) << PrintGraph(*found);
    ASSERT_EQ(found->producer(found->FindOutput("y"), "attention") == nullptr, false);
  }
}

}  // namespace
}  // namespace ridge
