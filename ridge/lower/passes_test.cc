// The law of every pass: the same results.  Random graphs run with and without each pass and each
// pair of passes, on the reference interpreter.
#include "ridge/graph/passes/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/fuse_groups.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

// Small graphs with everything the passes look for: neutral constants, equal nodes, dead nodes,
// transposes, reshapes, casts, broadcasts, products, values with many readers.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), b_("random") {}

  Graph Build() {
    dtype_ = Pick(2) == 0 ? DType::kF64 : DType::kF32;
    for (int i = 0; i < 2; ++i) Keep(b_.Input("x", {dtype_, {3, 4}}));
    Keep(b_.Input("row", {dtype_, {4}}));
    Keep(b_.Input("square", {dtype_, {4, 4}}));
    Keep(b_.Input("one", {dtype_, {1, 4}}));
    const Value state = b_.State("s", {dtype_, {3, 4}}, Init::Uniform(1), ValueRole::kNone);
    Keep(state);
    for (double c : {0.0, 1.0, 0.5, -2.0}) Keep(b_.Scalar(dtype_, c));
    const int count = 5 + Pick(25);
    for (int i = 0; i < count; ++i) AddOne();
    Finish(state);
    Result<Graph> graph = b_.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *std::move(graph);
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  Value Any() { return values_[static_cast<size_t>(Pick(static_cast<int>(values_.size())))]; }
  Value Recent() {
    const int n = std::min<int>(4, static_cast<int>(values_.size()));
    return values_[values_.size() - 1 - static_cast<size_t>(Pick(n))];
  }
  void Keep(Value v) {
    if (v.valid()) values_.push_back(v);
  }

  void AddOne() {
    const int kind = Pick(12);
    if (kind < 4) return AddUnary();
    if (kind < 8) return AddBinary();
    if (kind == 8) return AddMove();
    if (kind == 9) return AddReduce();
    if (kind == 10) return AddMatmul();
    AddSelect();
  }

  void AddUnary() {
    static constexpr const char* kOps[] = {"neg",     "abs",  "relu", "tanh",
                                           "sigmoid", "silu", "gelu", "floor"};
    Keep(Op(kOps[Pick(8)], {Recent()}));
  }

  // Both broadcast, or nothing is added.
  void AddBinary() {
    static constexpr const char* kOps[] = {"add", "mul", "sub", "maximum", "add", "mul", "div"};
    const char* op = kOps[Pick(7)];
    const Value a = Recent(), c = Any();
    if (!BroadcastDims(a.dims(), c.dims()).ok()) return;
    if (std::string_view(op) == "div") {
      Keep(Op(op, {a, Pick(2) == 0 ? b_.Scalar(dtype_, 1) : Abs(c) + 1}));
    } else {
      Keep(Op(op, {a, c}));
    }
  }

  void AddMove() {
    const Value v = Recent();
    const Dims dims = v.dims();
    const int kind = Pick(4);
    if (kind == 0) {
      std::vector<int64_t> reversed;
      for (size_t d = dims.size(); d-- > 0;) reversed.push_back(static_cast<int64_t>(d));
      Keep(Transpose(v, reversed));
    } else if (kind == 1) {
      Keep(Reshape(v, Pick(2) == 0 ? dims : Dims{ElementCount(dims)}));
    } else if (kind == 2 && BroadcastDims(dims, {3, 4}).ok() && ElementCount(dims) <= 12) {
      Keep(Expand(v, *BroadcastDims(dims, {3, 4})));
    } else {
      Keep(Cast(Cast(v, DType::kF64), dtype_));
    }
  }

  void AddReduce() {
    const Value v = Recent();
    const auto rank = static_cast<int>(v.dims().size());
    std::vector<int64_t> axes;
    if (rank > 0 && Pick(2) == 0) axes.push_back(Pick(rank));
    Keep(Mean(v, axes, Pick(2) == 0));
  }

  void AddMatmul() {
    const Value a = Recent(), c = Any();
    const Dims da = a.dims(), dc = c.dims();
    if (da.size() != 2 || dc.size() != 2) return;
    if (da[1] == dc[0]) Keep(MatMul(a, c));
    if (da[1] == dc[1]) Keep(MatMul(a, c, false, true));
    if (da[0] == dc[0]) Keep(MatMul(a, c, true, false));
  }

  void AddSelect() {
    const Value a = Recent(), c = Any();
    if (!BroadcastDims(a.dims(), c.dims()).ok()) return;
    const Value other = Tanh(c);
    Keep(Where(a > c, a, other));
  }

  void Finish(Value state) {
    for (int i = 0; i < 3; ++i) b_.Output("out" + std::to_string(i), Recent());
    b_.Output("any", Any());
    for (size_t i = values_.size(); i-- > 0;) {
      if (values_[i].dims() != Dims{3, 4}) continue;
      b_.Update(state, values_[i]);
      return;
    }
  }

  std::mt19937 random_;
  GraphBuilder b_;
  DType dtype_ = DType::kF32;
  std::vector<Value> values_;
};

// The inputs that the graph needs, the same for each graph with these inputs.
std::map<std::string, Tensor> MakeInputs(const Graph& graph) {
  std::map<std::string, Tensor> inputs;
  std::mt19937 random(7);
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    Tensor tensor(graph.type(id));
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double value = static_cast<double>(random() % 2001) / 1000 - 1;
      StoreFromDouble(tensor.type().dtype, tensor.mutable_data(), i,
                      IsFloat(tensor.type().dtype) ? value : static_cast<double>(random() % 3));
    }
    inputs[graph.value(id).name] = tensor;
  }
  return inputs;
}

// Outputs and updates, by name.
std::map<std::string, Tensor> Run(const Graph& graph) {
  const Result<std::vector<Tensor>> values = EvaluateGraph(graph, MakeInputs(graph), 3);
  EXPECT_TRUE(values.ok()) << values.status().message();
  std::map<std::string, Tensor> results;
  if (!values.ok()) return results;
  for (const GraphOutput& output : graph.outputs()) {
    results["output " + output.name] = (*values)[static_cast<size_t>(output.value)];
  }
  for (const GraphUpdate& update : graph.updates()) {
    results["update " + graph.value(update.variable).name] =
        (*values)[static_cast<size_t>(update.value)];
  }
  return results;
}

// f64: 1e-12, f32: 1e-5, of the largest element: rewrites change the order of rounding.
bool Near(const Tensor& a, const Tensor& b) {
  if (!(a.type() == b.type())) return false;
  double largest = 1, difference = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (std::isnan(a.at(i)) != std::isnan(b.at(i))) return false;
    if (std::isnan(a.at(i)) || a.at(i) == b.at(i)) continue;
    largest = std::max(largest, std::fabs(a.at(i)));
    difference = std::max(difference, std::fabs(a.at(i) - b.at(i)));
  }
  return difference <= largest * (a.type().dtype == DType::kF64 ? 1e-12 : 1e-5);
}

void ExpectSameResults(const Graph& before, const Graph& after, bool bitwise,
                       const std::string& what) {
  const Status status = CheckGraph(after);
  ASSERT_TRUE(status.ok()) << what << ": " << status.message();
  const auto expected = Run(before), got = Run(after);
  ASSERT_EQ(expected.size(), got.size()) << what;
  for (const auto& [name, tensor] : expected) {
    const bool same = bitwise ? tensor.same_bits(got.at(name)) : Near(tensor, got.at(name));
    ASSERT_TRUE(same) << what << ": " << name << " differs\n"
                      << PrintGraph(before) << "\n"
                      << PrintGraph(after);
  }
}

// A rounding difference before floor or a comparison may become a whole step, so graphs in which
// algebra rounds otherwise leave them out.
bool HasSteps(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "floor" || node.op->name == "greater") return true;
  }
  return false;
}

std::vector<const PassInfo*> Rewrites() {
  std::vector<const PassInfo*> passes;
  for (const PassInfo& pass : AllPasses()) {
    if (pass.run != nullptr) passes.push_back(&pass);
  }
  return passes;
}

bool IsBitwise(const PassInfo& pass) {
  const std::string_view name = pass.name;
  return name != "algebra" && name != "patterns";
}

TEST(Passes, AloneAndInPairsGiveTheSameResults) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Graph graph = RandomGraph(seed).Build();
    for (const PassInfo* first : Rewrites()) {
      if (!IsBitwise(*first) && HasSteps(graph)) continue;
      const Result<Graph> once = first->run(graph, UnlimitedRules());
      ASSERT_TRUE(once.ok()) << first->name << ": " << once.status().message();
      ExpectSameResults(graph, *once, IsBitwise(*first), first->name);
      if (HasFatalFailure()) return;
      for (const PassInfo* second : Rewrites()) {
        if (!IsBitwise(*second) && HasSteps(graph)) continue;
        const Result<Graph> twice = second->run(*once, UnlimitedRules());
        ASSERT_TRUE(twice.ok()) << second->name << ": " << twice.status().message();
        ExpectSameResults(graph, *twice, IsBitwise(*first) && IsBitwise(*second),
                          std::string(first->name) + " then " + second->name);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Passes, TheirGraphsPrintAndReadBack) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Graph graph = RandomGraph(seed).Build();
    const Result<Graph> after = RunPasses(graph, *ParsePassSpec(""), UnlimitedRules());
    ASSERT_TRUE(after.ok()) << after.status().message();
    const std::string text = PrintGraph(*after);
    const Result<Graph> again = ParseGraph(text, "again");
    ASSERT_TRUE(again.ok()) << again.status().message() << text;
    EXPECT_EQ(PrintGraph(*again), text);
  }
}

TEST(Passes, NeverMakeMoreNodesOrFlops) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::vector<PassReport> reports;
    const Graph graph = RandomGraph(seed).Build();
    ASSERT_TRUE(RunPasses(graph, *ParsePassSpec(""), UnlimitedRules(), &reports).ok());
    ASSERT_EQ(reports.size(), Rewrites().size());
    for (const PassReport& report : reports) {
      EXPECT_LE(report.after.nodes, report.before.nodes) << report.name << PrintGraph(graph);
      EXPECT_LE(report.after.flops, report.before.flops) << report.name << PrintGraph(graph);
      EXPECT_LE(report.after.result_bytes, report.before.result_bytes) << report.name;
      EXPECT_LE(report.after.traffic_bytes, report.before.traffic_bytes) << report.name;
    }
  }
}

TEST(Passes, GiveTheSameTextEachTime) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = RandomGraph(seed).Build();
    const Result<Graph> a = RunPasses(graph, *ParsePassSpec(""), UnlimitedRules());
    const Result<Graph> b = RunPasses(graph, *ParsePassSpec(""), UnlimitedRules());
    EXPECT_EQ(PrintGraph(*a), PrintGraph(*b));
  }
}

// min(1, 0.5 / norm of all gradients).
Value ClipScale(GraphBuilder& b, const std::vector<Value>& grads, DType dtype) {
  Value square_sum = b.Scalar(dtype, 0);
  for (Value g : grads) {
    square_sum = square_sum + Sum(Square(g));
  }
  const Value norm = Sqrt(square_sum) + 1e-6;
  const Value one = b.Scalar(dtype, 1);
  return Minimum(one, 0.5 / norm);
}

void AddAdam(GraphBuilder& b, const std::vector<Value>& params, const std::vector<Value>& grads,
             Value lr, Value step) {
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = b.graph().value(params[i].id).name;
    const TensorType type = params[i].type();
    const Value m = b.State(name + ".m", type, Init::Zeros(), ValueRole::kOptimizer);
    const Value v = b.State(name + ".v", type, Init::Zeros(), ValueRole::kOptimizer);
    const std::vector<Value> updated =
        OpOutputs("adam_update", {params[i], grads[i], m, v, lr, step});
    b.Update(params[i], updated[0]);
    b.Update(m, updated[1]);
    b.Update(v, updated[2]);
  }
}

// A training step as the trainer builds it: product layers, loss, gradients, clipping, Adam.
Graph TrainingStep(DType dtype) {
  GraphBuilder b("step");
  const Value x = b.Input("x", {dtype, {6, 5}}, {"batch", ""});
  const Value labels = b.Input("labels", {DType::kI64, {6}}, {"batch"});
  const Value lr = b.Input("lr", {dtype, {}});
  const Value step = b.Input("step", {DType::kI64, {}});
  const Value h = Silu(b.Linear(x, 7, "fc1"));
  const Value r = Relu(b.Linear(h, 7, "fc2") + h);
  const Value losses = Op("softmax_cross_entropy", {b.Linear(r, 3, "fc3"), labels});
  const Value loss = Mean(losses);
  std::vector<Value> params;
  for (ValueId id : b.graph().ValuesOfKind(ValueKind::kParameter)) params.push_back(b.At(id));
  Result<std::vector<Value>> grads = AppendGradients(b, loss, params);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  const Value scale = ClipScale(b, *grads, dtype);
  for (Value& grad : *grads) grad = grad * scale;
  AddAdam(b, params, *grads, lr, step);
  b.Output("loss", loss);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

TEST(Passes, KeepATrainingStep) {
  for (DType dtype : {DType::kF64, DType::kF32}) {
    const Graph graph = TrainingStep(dtype);
    for (const char* spec : {"", "only:fold", "only:algebra", "only:cse", "only:dce", "only:fuse",
                             "-algebra", "-fuse", "-dce", "-cse"}) {
      const PassSelection selection = *ParsePassSpec(spec);
      const Result<Graph> after = RunPasses(graph, selection, UnlimitedRules());
      ASSERT_TRUE(after.ok()) << after.status().message();
      ExpectSameResults(graph, *after, !selection.Has("algebra") && !selection.Has("patterns"),
                        spec);
      EXPECT_EQ(after->ValuesOfKind(ValueKind::kParameter).size(), 6u);
      EXPECT_EQ(after->updates().size(), graph.updates().size());
    }
  }
}

TEST(Passes, KeepTheRoleOfGradients) {
  const Graph graph = TrainingStep(DType::kF32);
  const Result<Graph> after = RunPasses(graph, *ParsePassSpec(""), UnlimitedRules());
  ASSERT_TRUE(after.ok());
  const auto gradients = [](const Graph& g) {
    return std::count_if(g.values().begin(), g.values().end(),
                         [](const ValueInfo& value) { return value.role == ValueRole::kGradient; });
  };
  EXPECT_EQ(gradients(graph), 6);
  EXPECT_EQ(gradients(*after), 6);
}

TEST(PassSpec, NamesWhatRuns) {
  const auto names = [](std::string_view spec) { return ParsePassSpec(spec)->names; };
  EXPECT_EQ(names("").size(), AllPasses().size());
  EXPECT_EQ(names("none").size(), 0u);
  EXPECT_EQ(names("only:cse,fold"), (std::vector<std::string>{"fold", "cse"}));
  EXPECT_FALSE(ParsePassSpec("-fuse,-layout")->Has("fuse"));
  EXPECT_FALSE(ParsePassSpec("-fuse,-layout")->Has("layout"));
  EXPECT_EQ(names("-fuse,-layout").size(), AllPasses().size() - 2);
}

TEST(PassSpec, RefusesUnknownNamesAndListsTheKnown) {
  for (const char* spec : {"-fuze", "fuse", "only:", "only:x", "-", ",", "-fuse,", "only:-fuse"}) {
    const Result<PassSelection> selection = ParsePassSpec(spec);
    ASSERT_FALSE(selection.ok()) << spec;
    EXPECT_EQ(selection.status().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(ParsePassSpec("only:fuze").status().message(),
            "unknown pass 'fuze'; did you mean 'fuse'?; known: fold, push_slices, patterns, "
            "attention, attention_layout, algebra, pad_products, cse, dce, fuse, "
            "inplace, layout. hint: -NAME leaves one out, only:NAME,NAME runs just these, none "
            "runs none");
}

}  // namespace
}  // namespace ridge
