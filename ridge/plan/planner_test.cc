#include "ridge/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/lower/test_costs.h"
#include "ridge/lower/test_rules.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/memory/check_placement.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/plan/memory/placement.h"
#include "ridge/plan/schedule.h"
#include "ridge/plan/total.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr LayoutId kBlocked = 1;

// Runs nothing.  `blocked_op` is fast in layout 1 and slow in row-major; every pointwise operator
// takes what it gets and may work in place; `unknown_op` has no kernel.
class FakeKernels : public KernelQuery {
 public:
  std::string blocked_op, unknown_op;
  bool in_place = true;
  int64_t workspace_bytes = 0;
  MemorySpace space;
  const CostModel* costs = &TestCosts();

  const RewriteRules& rules() const override { return UnlimitedRules(); }
  const CostModel& nominal() const override { return *costs; }
  bool Multiplies(DType) const override { return true; }
  MemorySpace memory() override { return space; }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    if (op.name == unknown_op) return {{}, {{"fake", "declines for the test"}}};
    KernelChoice plain;
    plain.kernel = "plain";
    plain.key = op.name + " plain";
    plain.workspace_bytes = workspace_bytes;
    plain.input_layouts.assign(call.inputs.size(), kRowMajor);
    plain.output_layouts.assign(call.outputs.size(), kRowMajor);
    if (in_place) plain.in_place = op.in_place;
    KernelChoice blocked = plain;
    blocked.kernel = "blocked";
    blocked.key = op.name + " blocked";
    blocked.input_layouts[0] = blocked.output_layouts[0] = kBlocked;
    if (op.name == blocked_op) {
      plain.efficiency = 0.001;
      return {{blocked, plain}, {}};
    }
    if (op.elementwise != nullptr && call.inputs.size() == 1 && available[0] == kBlocked)
      return {{blocked, plain}, {}};
    return {{plain}, {}};
  }
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }
  int64_t LayoutBytes(LayoutId, const TensorType& type) const override { return type.bytes(); }
  std::string LayoutName(LayoutId layout) const override {
    return layout == kBlocked ? "blocked" : "row_major";
  }
  KernelChoice Reorder(const TensorType&, LayoutId from, LayoutId to) override {
    KernelChoice choice;
    choice.kernel = "reorder";
    choice.key = "reorder";
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    return choice;
  }
};

class Planner : public ::testing::Test {
 protected:
  const StepPlan& Plan(GraphBuilder& b, PlanOptions options = {}) {
    return PlanNamed({"train", Built(b)}, options);
  }
  // In two slices of "x", with the sum "s" over them.
  StepPlan& PlanSlices(GraphBuilder& b) {
    NamedGraph named{"train", Built(b)};
    named.slices = 2;
    named.sliced_inputs = {"x"};
    named.accumulators = {"s"};
    return PlanNamed(named, {});
  }

  static std::string Nodes(const StepPlan& step) {
    std::string text;
    for (const PlannedNode& node : step.nodes) text += node.name + " ";
    return text;
  }
  static const PlannedValue& Planned(const StepPlan& step, const std::string& name) {
    const auto found = std::find_if(step.values.begin(), step.values.end(),
                                    [&](const PlannedValue& v) { return v.name == name; });
    EXPECT_NE(found, step.values.end()) << name;
    return *found;
  }

  FakeKernels kernels_;
  const CostModel* measured_ = &TestCosts();
  Program program_;

 private:
  static Graph Built(GraphBuilder& b) {
    const auto graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *graph;
  }
  StepPlan& PlanNamed(const NamedGraph& named, const PlanOptions& options) {
    const auto program = PlanProgram("test", {named}, kernels_, *measured_, options);
    EXPECT_TRUE(program.ok()) << program.status().message();
    program_ = *program;
    return program_.steps[0];
  }
};

const TensorType kType{DType::kF32, {8, 16}};  // 512 bytes

TEST_F(Planner, OffsetsAndTheArenaAreMultiplesOfWhatTheDeviceAsks) {
  for (const MemorySpace space : {MemorySpace{64, 4096}, MemorySpace{256, 1 << 21}}) {
    kernels_.space = space;
    kernels_.workspace_bytes = 100;
    GraphBuilder b("g");
    const Value w = b.Parameter("w", {DType::kF32, {3}}, Init::Zeros());
    const Value x = b.Input("x", {DType::kF32, {3}});
    b.Output("y", Op("exp", {Op("add", {Op("neg", {x}), w})}));
    const StepPlan& step = Plan(b);
    for (const PersistentValue& value : program_.persistent)
      EXPECT_EQ(value.offset_bytes % space.alignment_bytes, 0) << value.name;
    EXPECT_EQ(program_.persistent[1].offset_bytes, space.alignment_bytes);
    for (const PlannedValue& value : step.values)
      EXPECT_EQ(value.offset_bytes % space.alignment_bytes, 0) << value.name;
    for (const PlannedNode& node : step.nodes)
      EXPECT_EQ(node.workspace_offset % space.alignment_bytes, 0) << node.name;
    EXPECT_EQ(program_.arena_bytes, space.page_bytes);
  }
}

TEST_F(Planner, AReorderIsMadeOnceAndSharedByAllReaders) {
  kernels_.blocked_op = "exp";
  GraphBuilder b("g");
  const Value x = b.Input("x", kType);
  const Value a = Op("exp", {x}, {}, "a");
  const Value c = Op("exp", {x}, {}, "c");
  b.Output("y", Op("add", {a, c}, {}, "y"));
  EXPECT_EQ(Nodes(Plan(b)), "x@blocked a c a@row_major c@row_major y ");
}

TEST_F(Planner, LayoutsFlowThroughPointwiseNodes) {
  kernels_.blocked_op = "exp";
  GraphBuilder b("g");
  const Value a = Op("exp", {b.Input("x", kType)}, {}, "a");
  b.Output("y", Op("exp", {Op("relu", {a}, {}, "r")}, {}, "y"));
  const StepPlan& step = Plan(b);
  EXPECT_EQ(Nodes(step), "x@blocked a r y y@row_major ");
  EXPECT_EQ(Planned(step, "r").layout, kBlocked);
}

// `exp` runs blocked by the nominal device, which knows its row-major kernel to be slow.
TEST_F(Planner, MeasuredSecondsChooseBetweenKernelsThatWereMeasured) {
  kernels_.blocked_op = "exp";
  const auto nodes = [&](const std::map<std::string, double>& kernel_s) {
    PlanOptions options;
    options.kernel_s = &kernel_s;
    GraphBuilder b("g");
    b.Output("y", Op("exp", {b.Input("x", kType)}, {}, "a"));
    return Nodes(Plan(b, options));
  };
  const std::string blocked = "x@blocked a a@row_major ", plain = "a ";
  EXPECT_EQ(nodes({}), blocked);
  EXPECT_EQ(nodes({{"exp blocked", 2e-6}, {"exp plain", 1e-6}}), plain);
  EXPECT_EQ(nodes({{"exp blocked", 1e-6}, {"exp plain", 2e-6}, {"reorder", 1e-7}}), blocked);
  EXPECT_EQ(nodes({{"exp blocked", 1e-6}, {"exp plain", 2e-6}, {"reorder", 5e-6}}), plain);
  // Not clearly faster; never compared.
  EXPECT_EQ(nodes({{"exp blocked", 1e-6}, {"exp plain", 0.99e-6}, {"reorder", 1e-12}}), blocked);
  EXPECT_EQ(nodes({{"exp plain", 1e-9}}), blocked);
}

// Takes given seconds, by kernel.
class ToldCosts : public CostModel {
 public:
  ToldCosts(std::string name, std::map<std::string, double> kernel_s, bool measured)
      : kernel_s_(std::move(kernel_s)), measured_(measured) {
    facts_.name = std::move(name);
  }
  const DeviceFacts& facts() const override { return facts_; }
  TimeEstimate Estimate(const Work&, const KernelChoice& choice) const override {
    TimeEstimate estimate;
    estimate.modelled_s = kernel_s_.at(choice.kernel);
    if (measured_) estimate.measured_s = 2 * estimate.modelled_s;
    return estimate;
  }
  double CachedSeconds(const Work& work, const KernelChoice& choice) const override {
    return Estimate(work, choice).modelled_s;
  }
  double BytesPerS(int64_t) const override { return 1e9; }

 private:
  DeviceFacts facts_;
  const std::map<std::string, double> kernel_s_;
  const bool measured_;
};

// Each of the two models likes another kernel.
TEST_F(Planner, TheNominalModelDecidesAndTheMeasuredOneIsShown) {
  kernels_.blocked_op = "exp";
  const ToldCosts likes_plain("a", {{"plain", 1}, {"blocked", 8}, {"reorder", 2}}, false);
  const ToldCosts likes_blocked("b", {{"plain", 64}, {"blocked", 16}, {"reorder", 4}}, true);
  const auto plan = [&](const CostModel& nominal, const CostModel& measured) -> const StepPlan& {
    kernels_.costs = &nominal;
    measured_ = &measured;
    GraphBuilder b("g");
    b.Output("y", Op("exp", {b.Input("x", kType)}, {}, "a"));
    return Plan(b);
  };
  const StepPlan& plain = plan(likes_plain, likes_blocked);
  EXPECT_EQ(Nodes(plain), "a ");
  EXPECT_EQ(program_.device, "b");
  EXPECT_EQ(ModelledSeconds(plain), 64);
  EXPECT_EQ(PlannedSeconds(plain), 2 * 64);
  const StepPlan& blocked = plan(likes_blocked, likes_plain);
  EXPECT_EQ(Nodes(blocked), "x@blocked a a@row_major ");
  EXPECT_EQ(ModelledSeconds(blocked), 8 + 2 * 2);
  EXPECT_EQ(PlannedSeconds(blocked), ModelledSeconds(blocked));
}

// Slices: a node runs twice.
TEST(Times, WhatWasTimedStandsBesideWhatIsModelled) {
  StepPlan step;
  step.body = Region::Loop(0, 3, 2);
  step.nodes.resize(3);
  for (PlannedNode& node : step.nodes) node.modelled_s = 1;
  step.nodes[0].measured_s = 3;
  step.nodes[0].correction = 100;  // of nodes that were not timed
  step.nodes[1].correction = 1.5;
  step.calibration = 2;
  EXPECT_EQ(ModelledNodeSeconds(step), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(PlannedNodeSeconds(step), (std::vector<double>{6, 3, 2}));
  EXPECT_EQ(ModelledSeconds(step), 6);
  EXPECT_EQ(PlannedSeconds(step), 22);
}

TEST_F(Planner, WithoutTheLayoutPassEverythingIsRowMajor) {
  kernels_.blocked_op = "exp";
  GraphBuilder b("g");
  b.Output("y", Op("exp", {b.Input("x", kType)}, {}, "y"));
  PlanOptions options;
  options.layout = false;
  EXPECT_EQ(Nodes(Plan(b, options)), "y ");
}

TEST_F(Planner, InPlaceChainNeedsOneBuffer) {
  GraphBuilder b("g");
  Value v = b.Input("x", kType);
  for (const char* name : {"a", "b", "c", "d"}) v = Op("exp", {v}, {}, name);
  b.Output("y", v);
  EXPECT_EQ(Plan(b).scratch_bytes, 512);
  PlanOptions apart;
  apart.in_place = false;
  EXPECT_EQ(Plan(b, apart).scratch_bytes, 1024);
}

// Nobody reads the first one, so its bytes are free again behind the node, not within it.
TEST(ShareInPlace, TwoResultsOfANodeDoNotTakeTheSameOperand) {
  StepPlan step;
  step.values.resize(3);
  for (PlannedValue& value : step.values) value.size_bytes = 64;
  step.nodes.resize(3);
  step.nodes[0].outputs = {0};
  step.nodes[1].inputs = {0};
  step.nodes[1].outputs = {1, 2};
  step.nodes[1].choice.in_place = {{0, 0}, {1, 0}};
  step.nodes[2].inputs = {2};
  ShareInPlace(MemorySpace{}, step);
  EXPECT_EQ(step.values[1].shares_with, 0);
  EXPECT_EQ(step.values[2].shares_with, -1);
}

TEST_F(Planner, AValueThatIsReadAgainIsNotOverwritten) {
  GraphBuilder b("g");
  const Value a = Op("exp", {b.Input("x", kType)}, {}, "a");
  const Value c = Op("neg", {a}, {}, "c");
  b.Output("y", Op("add", {a, c}, {}, "y"));
  const StepPlan& step = Plan(b);
  EXPECT_NE(Planned(step, "a").offset_bytes, Planned(step, "c").offset_bytes);
  EXPECT_EQ(step.scratch_bytes, 1024);
}

// Behind a view, and in 16 bits; not where the types differ.
TEST_F(Planner, TheGradientOfLogitsTakesTheirBytes) {
  const auto plan = [this](const char* out_dtype) -> const StepPlan& {
    GraphBuilder b("g");
    const Value y = Op("exp", {b.Input("x", {DType::kBF16, {8, 64}})}, {}, "y");
    const Value logits = Reshape(y, {2, 4, 64});
    const Value label = b.Input("label", {DType::kI64, {2, 4}});
    const std::vector<Value> row =
        OpOutputs("softmax_cross_entropy", {logits, label}, {{"extra_outputs", 1}}, "losses");
    b.Output("dlogits", Op("softmax_cross_entropy_grad", {logits, label, row[0], row[1]},
                           {{"out_dtype", std::string(out_dtype)}}, "dlogits"));
    return Plan(b);
  };
  const StepPlan& same = plan("");
  EXPECT_EQ(Planned(same, "dlogits").offset_bytes, Planned(same, "y").offset_bytes);
  const StepPlan& wider = plan("f32");
  EXPECT_NE(Planned(wider, "dlogits").offset_bytes, Planned(wider, "y").offset_bytes);
}

TEST_F(Planner, AnOutputIsNotOverwrittenByTheLastNode) {
  GraphBuilder b("g");
  const Value a = Op("exp", {b.Input("x", kType)}, {}, "a");
  b.Output("a", a);
  b.Output("y", Op("neg", {a}, {}, "y"));
  const StepPlan& step = Plan(b);
  EXPECT_NE(Planned(step, "a").offset_bytes, Planned(step, "y").offset_bytes);
}

TEST_F(Planner, InputsAreNeverOverwritten) {
  GraphBuilder b("g");
  b.Output("y", Op("exp", {b.Input("x", kType)}, {}, "y"));
  EXPECT_FALSE(Planned(Plan(b), "y").persistent);
}

TEST_F(Planner, AnUpdateIsWrittenIntoItsVariable) {
  GraphBuilder b("g");
  const Value s = b.State("s", kType, Init::Zeros(), ValueRole::kNone);
  const Value next = Op("add", {s, b.Input("x", kType)}, {}, "next");
  b.Update(s, next);
  const StepPlan& step = Plan(b);
  EXPECT_EQ(Nodes(step), "next ");
  EXPECT_EQ(Planned(step, "next").offset_bytes, program_.persistent[0].offset_bytes);
}

TEST_F(Planner, AnUpdateIsCopiedWhenTheOldContentsAreStillRead) {
  GraphBuilder b("g");
  const Value s = b.State("s", kType, Init::Zeros(), ValueRole::kNone);
  const Value next = Op("add", {s, b.Input("x", kType)}, {}, "next");
  b.Output("y", Op("mul", {next, s}, {}, "y"));
  b.Update(s, next);
  EXPECT_EQ(Nodes(Plan(b)), "next y s@next ");
}

TEST_F(Planner, ViewsShareBytesAndRunNoKernel) {
  GraphBuilder b("g");
  const Value a = Op("exp", {b.Input("x", kType)}, {}, "a");
  const Value flat = Op("reshape", {a}, {{"dims", {128}}}, "flat");
  b.Output("y", Op("neg", {flat}, {}, "y"));
  const StepPlan& step = Plan(b);
  EXPECT_EQ(Nodes(step), "a y ");
  EXPECT_EQ(Planned(step, "flat").offset_bytes, Planned(step, "a").offset_bytes);
}

TEST_F(Planner, OptimizerNodesRunAsSoonAsTheirVariablesAreFree) {
  GraphBuilder b("g");
  const Value x = b.Input("x", kType);
  const Value lr = b.Input("lr", {DType::kF32, {}});
  const Value w = b.Parameter("w", kType, Init::Zeros());
  const Value v = b.Parameter("v", kType, Init::Zeros());
  const Value h = Op("mul", {Op("mul", {x, w}, {}, "h1"), v}, {}, "h2");
  const Value loss = Sum(h);
  const auto grads = AppendGradients(b, loss, {w, v});
  ASSERT_TRUE(grads.ok());
  b.Update(w, Op("sgd_update", {w, (*grads)[0], lr}, {}, "w.next"));
  b.Update(v, Op("sgd_update", {v, (*grads)[1], lr}, {}, "v.next"));
  b.Output("loss", loss);
  const auto order = ScheduleNodes(*b.Build());
  const Graph& graph = b.graph();
  std::vector<std::string> names;
  for (NodeId n : order) names.push_back(graph.value(graph.node(n).outputs[0]).name);
  const auto at = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(at("v.next"), at("w.next"));
  EXPECT_EQ(at("w.next"), at("w.grad") + 1);
}

TEST_F(Planner, ReductionsToLittleRunEarlySoThatOthersMayWriteOverWhatTheyRead) {
  GraphBuilder b("g");
  const Value x = Op("exp", {b.Input("x", kType)}, {}, "x1");
  b.Output("y", Op("neg", {x}, {}, "y"));
  b.Output("most", Op("reduce_max", {x}, {}, "most"));
  EXPECT_EQ(Nodes(Plan(b)), "x1 most y ");
}

TEST_F(Planner, ANodeWithoutAKernelIsRefusedWithTheReasons) {
  kernels_.unknown_op = "exp";
  GraphBuilder b("g");
  b.Output("y", Op("exp", {b.Input("x", kType)}, {}, "y"));
  const auto program = PlanProgram("m", {{"eval", *b.Build()}}, kernels_, TestCosts(), {});
  EXPECT_EQ(program.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(program.status().message(),
            "exp 'y': no kernel runs this node here\n  fake: declines for the test");
}

// `y` reads the sum once, with the last slice; the sum itself must be there for every slice.
TEST_F(Planner, ASumInALayoutOfItsOwnIsBroughtBackInEverySlice) {
  kernels_.blocked_op = "add";
  GraphBuilder b("g");
  const Value s = b.State("s", kType, Init::Zeros(), ValueRole::kNone);
  const Value total = Op("add", {s, b.Input("x", kType)}, {}, "total");
  b.Output("y", Op("reduce_max", {total}, {}, "y"));
  b.Update(s, total);
  const StepPlan& step = PlanSlices(b);
  ASSERT_EQ(Nodes(step), "s@blocked total total@row_major y ");
  EXPECT_TRUE(NodePlaces(step)[2].in_loop);
  EXPECT_FALSE(NodePlaces(step)[3].in_loop);
}

TEST_F(Planner, UnboundDimensionsAreRefusedByName) {
  GraphBuilder b("g");
  b.Output("y", Op("exp", {b.Input("x", kType, {"batch?", ""})}, {}, "y"));
  const auto program = PlanProgram("m", {{"eval", *b.Build()}}, kernels_, TestCosts(), {});
  EXPECT_EQ(program.status().message(),
            "g: dimension 'batch' is not bound. hint: --batch or --dim batch=N");
}

TEST_F(Planner, BreakdownAddsUpToThePeak) {
  GraphBuilder b("g");
  const Value w = b.Parameter("w", kType, Init::Zeros());
  const Value h = Op("mul", {b.Input("x", kType), w}, {}, "h");
  b.Output("y", Sum(Op("exp", {h}, {}, "e")));
  Plan(b);
  const MemoryEstimate memory = EstimateMemory(program_, /*runtime_bytes=*/1000, /*data_bytes=*/77);
  int64_t sum = 0;
  for (const auto& [name, bytes] : memory.breakdown) sum += bytes;
  EXPECT_EQ(sum, memory.peak_bytes);
  EXPECT_EQ(memory.peak_bytes, program_.arena_bytes + 1077);
  EXPECT_EQ(memory.peak_node, "reduce_sum");  // h and the sum; exp works in place
}

TEST_F(Planner, RecordedStepsTakeBytesByTheRunsOfTheirNodesInBothSlots) {
  GraphBuilder b("g");
  const Value h = Op("mul", {b.Input("x", kType), b.Input("y", kType)}, {}, "h");
  b.Output("z", Sum(Op("exp", {h}, {}, "e")));
  Plan(b);
  EXPECT_EQ(RecordedBytes(program_, /*run_bytes=*/0), 0);
  EXPECT_EQ(RecordedBytes(program_, /*run_bytes=*/1), 2 << 20);  // a page
  EXPECT_EQ(RecordedBytes(program_, /*run_bytes=*/1 << 20), 2 * 3 << 20);
}

// A step of gradients: forward up to the loss, backward from the first gradient on, then updates.
TEST_F(Planner, ThePhaseThatNeedsTheMostIsTheArenasLowerBound) {
  GraphBuilder b("g");
  const Value w = b.Parameter("w", kType, Init::Zeros());
  const Value h = Op("mul", {b.Input("x", kType), w}, {}, "h");
  const Value e = Op("exp", {h}, {}, "e");
  const Value grad = Op("mul", {e, h}, {}, "w.grad");
  b.Output("y", Sum(e));
  b.Update(w, Op("sub", {w, grad}, {}, "next"));
  Plan(b);
  const std::vector<PhasePeak> peaks = PhasePeaks(program_);
  ASSERT_EQ(peaks.size(), 3u);
  EXPECT_EQ(peaks[0].phase, "forward");
  EXPECT_EQ(peaks[1].phase, "backward");
  EXPECT_EQ(peaks[2].phase, "checkpoint");
  EXPECT_EQ(PlaceOf(peaks[2]), "between steps");
  EXPECT_EQ(peaks[2].bytes, program_.persistent_bytes) << "no variable has a layout of its own";
  int64_t most = 0;
  for (const PhasePeak& peak : peaks) {
    EXPECT_EQ(peak.largest.empty(), peak.step.empty()) << peak.phase;
    most = std::max(most, peak.bytes);
  }
  EXPECT_EQ(most, program_.bound_bytes);
}

TEST_F(Planner, EqualInputGivesTheEqualPlan) {
  kernels_.blocked_op = "exp";
  GraphBuilder b("g");
  const Value a = Op("exp", {b.Input("x", kType)}, {}, "a");
  b.Output("y", Op("add", {a, Op("neg", {a}, {}, "n")}, {}, "y"));
  const StepPlan first = Plan(b);
  const StepPlan second = Plan(b);
  ASSERT_EQ(first.values.size(), second.values.size());
  for (size_t v = 0; v < first.values.size(); ++v)
    EXPECT_EQ(first.values[v].offset_bytes, second.values[v].offset_bytes);
}

// What a planner that errs would have made of a right plan.
class CheckPlacementTest : public Planner {
 protected:
  CheckPlacementTest() { kernels_.workspace_bytes = 64; }

  // e = exp(x), n = neg(e) in place, y = n + w, and w = n in the end.
  StepPlan& PlanOne() {
    GraphBuilder b("g");
    const Value w = b.State("w", kType, Init::Zeros(), ValueRole::kNone);
    const Value e = Op("exp", {b.Input("x", kType)}, {}, "e");
    const Value n = Op("neg", {e}, {}, "n");
    b.Output("y", Op("add", {n, w}, {}, "y"));
    b.Update(w, Op("mul", {n, w}, {}, "next"));
    Plan(b);
    return program_.steps[0];
  }
  static PlannedNode& NodeAt(StepPlan& step, const std::string& name) {
    return *std::find_if(step.nodes.begin(), step.nodes.end(),
                         [&](const PlannedNode& node) { return node.name == name; });
  }
  std::string Found() const { return CheckPlacement(program_).message(); }
};

TEST_F(CheckPlacementTest, PassesWhatThePlannerMakes) {
  PlanOne();
  EXPECT_EQ(Found(), "");
}

TEST_F(CheckPlacementTest, PassesAResultInTheBytesOfAValueThatWasAddedLater) {
  StepPlan& step = PlanOne();
  const int last = static_cast<int>(step.values.size()), e = NodeAt(step, "e").outputs[0];
  step.values.push_back(step.values[static_cast<size_t>(e)]);
  NodeAt(step, "e").outputs[0] = NodeAt(step, "n").inputs[0] = last;
  step.values[static_cast<size_t>(NodeAt(step, "n").outputs[0])].shares_with = last;
  EXPECT_EQ(SharedBytes(step).RootOf(NodeAt(step, "n").outputs[0]), last);
  EXPECT_EQ(Found(), "");
}

TEST_F(CheckPlacementTest, FindsValuesThatShareBytes) {
  StepPlan& step = PlanOne();
  for (PlannedValue& value : step.values) {
    if (value.name == "y") value.offset_bytes = Planned(step, "n").offset_bytes + 64;
  }
  EXPECT_EQ(Found(), "plan train: 'e' and 'y' live at the same time and share bytes");
}

TEST_F(CheckPlacementTest, FindsAWorkspaceInAValue) {
  StepPlan& step = PlanOne();
  NodeAt(step, "y").workspace_offset = Planned(step, "n").offset_bytes;
  EXPECT_EQ(Found(),
            "plan train: 'e' and the workspace of 'y' live at the same time and share bytes");
}

TEST_F(CheckPlacementTest, FindsAVariableThatIsWrittenBeforeItsLastReader) {
  StepPlan& step = PlanOne();
  std::swap(NodeAt(step, "y"), NodeAt(step, "next"));
  EXPECT_EQ(Found(), "plan train: 'y' reads 'w', where 'next' lies");
}

TEST_F(CheckPlacementTest, FindsAValueThatIsWrittenOverBeforeItsLastReader) {
  StepPlan& step = PlanOne();
  NodeAt(step, "y").inputs[0] = NodeAt(step, "e").outputs[0];
  EXPECT_EQ(Found(), "plan train: 'y' reads 'e', where 'n' lies");
}

TEST_F(CheckPlacementTest, FindsAKernelThatMustNotWriteOverItsInput) {
  StepPlan& step = PlanOne();
  NodeAt(step, "n").choice.in_place.clear();
  EXPECT_EQ(Found(), "plan train: 'n' writes over 'e', which its kernel must not");
}

TEST_F(CheckPlacementTest, FindsStreamsThatShareWhatOneOfThemWrites) {
  StepPlan& step = PlanOne();
  const auto first = static_cast<int>(&NodeAt(step, "e") - step.nodes.data());
  ASSERT_EQ(step.nodes[static_cast<size_t>(first) + 1].name, "n");
  Region parallel = Region::Sequence(first, first + 2);
  parallel.kind = Region::Kind::kParallel;
  parallel.parts = {Region::Sequence(first, first + 1), Region::Sequence(first + 1, first + 2)};
  step.body.parts = {Region::Sequence(0, first), parallel,
                     Region::Sequence(first + 2, step.body.end)};
  EXPECT_NE(Found(), "");  // their workspaces have the same bytes
  NodeAt(step, "n").choice.workspace_bytes = 0;
  EXPECT_EQ(Found(), "plan train: 'n' touches bytes that another stream writes or reads");
}

TEST_F(CheckPlacementTest, FindsARegionWhosePartsLeaveANodeOut) {
  StepPlan& step = PlanOne();
  step.body.parts = {Region::Sequence(0, 1), Region::Sequence(2, step.body.end)};
  EXPECT_EQ(Found(), "plan train: a region's parts do not cover its nodes");
}

TEST_F(CheckPlacementTest, FindsALoopThatMissesASlice) {
  StepPlan& step = PlanOne();
  step.slices = 2;
  EXPECT_EQ(Found(), "plan train: the loop does not run once for each slice");
}

TEST_F(CheckPlacementTest, FindsWhatLiesBehindTheArena) {
  StepPlan& step = PlanOne();
  NodeAt(step, "y").workspace_offset = program_.arena_bytes;
  EXPECT_EQ(Found(),
            "plan train: the workspace of 'y' lies outside the scratch region or is not aligned");
}

TEST_F(CheckPlacementTest, FindsVariablesThatShareBytes) {
  PlanOne();
  program_.persistent[1].offset_bytes = program_.persistent[0].offset_bytes;
  EXPECT_EQ(Found(), "plan: '" + program_.persistent[1].name + "' shares bytes or is not aligned");
}

TEST_F(CheckPlacementTest, FindsWhatIsWrittenOverTheAddendOfASumInTheFirstSlice) {
  GraphBuilder b("g");
  const Value s = b.State("s", kType, Init::Zeros(), ValueRole::kNone);
  const Value e = Op("exp", {b.Input("x", kType)}, {}, "e");
  b.Update(s, Op("add", {s, e}, {}, "next"));
  b.Output("y", Op("neg", {e}, {}, "y"));
  StepPlan& step = PlanSlices(b);
  PeeledIteration& peeled = MicroBatchLoop(step)->peeled;
  for (size_t v = 0; v < step.values.size(); ++v) {
    const std::string& name = step.values[v].name;
    if (name == "e" || name == "y") peeled.written_in[static_cast<int>(v)] = 0;
  }
  peeled.skipped = {static_cast<int>(&NodeAt(step, "next") - step.nodes.data())};
  EXPECT_EQ(Found(), "plan train: the first slice leaves another value than 'e' in a sum");
}

}  // namespace
}  // namespace ridge
