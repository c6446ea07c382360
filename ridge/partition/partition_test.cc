// Graphs of a few nodes: how each rule of the walk shows in what is inserted.
#include "ridge/partition/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/builder.h"
#include "ridge/partition/normal_form.h"
#include "ridge/partition/virtual_devices.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Mesh kMesh{{{"a", 2}}};

TensorType Matrix(int64_t rows, int64_t cols) { return {DType::kF64, {rows, cols}}; }

Split CutAt(int dim, int64_t blocks = 1) {
  Split split;
  split.Add({dim, 0, blocks});
  return split;
}

std::vector<std::string> OpsOf(const Partitioned& parts) {
  std::vector<std::string> ops;
  for (const MeshCollective& c : parts.collectives) ops.push_back(c.op + " " + c.value);
  return ops;
}

// Partitions, and checks the numbers of one step against one device.
class Walk : public testing::Test {
 protected:
  Partitioned Laid(GraphBuilder& b, const std::map<std::string, Split>& use,
                   const std::map<std::string, Split>& stored = {}) {
    Result<Graph> graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    graph_ = *std::move(graph);
    Layout layout;
    for (const auto& [name, split] : use) layout.use[graph_.FindValue(name)] = split;
    for (const auto& [name, split] : stored) layout.stored[graph_.FindValue(name)] = split;
    Result<Partitioned> parts = Partition(graph_, layout, kMesh);
    EXPECT_TRUE(parts.ok()) << parts.status().message();
    ExpectSameNumbers(*parts);
    return *std::move(parts);
  }

  void ExpectSameNumbers(const Partitioned& parts) {
    NamedNumbers inputs;
    int64_t count = 0;
    for (ValueId id : graph_.ValuesOfKind(ValueKind::kInput)) {
      for (int64_t i = 0; i < graph_.type(id).elements(); ++i)
        inputs[graph_.value(id).name].push_back(std::sin(static_cast<double>(++count)));
    }
    const Partitioned alone = OnOneDevice(graph_);
    Result<VirtualDevices> one = VirtualDevices::Create(graph_, alone);
    Result<VirtualDevices> many = VirtualDevices::Create(graph_, parts);
    const Result<NamedNumbers> want = one->Step(inputs), got = many->Step(inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (const auto& [name, numbers] : *want) {
      for (size_t i = 0; i < numbers.size(); ++i)
        EXPECT_NEAR(got->at(name)[i], numbers[i], 1e-12) << name << " at " << i;
    }
  }

  Graph graph_;
};

// A sum that is pending on one side only would count the other side once for each device.
TEST_F(Walk, CompletesASumBeforeSomethingWholeIsAdded) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6)), w = b.Input("w", Matrix(6, 4));
  const Value c = b.Input("c", Matrix(4, 4));
  b.Output("y", Op("add", {Op("matmul", {x, w}, {}, "product"), c}));
  const Partitioned parts = Laid(b, {{"x", CutAt(1)}, {"w", CutAt(0)}, {"c", {}}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce product"));
}

// One value is never cut and pending by the same axis: the prototype's sums were, behind an
// addition of a pending value and one that is cut.
TEST_F(Walk, NeverCutsWhatIsPendingByTheSameAxis) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6)), w = b.Input("w", Matrix(6, 4));
  const Value c = b.Input("c", Matrix(4, 4));
  const Value sum = Op("add", {Op("matmul", {x, w}, {}, "product"), c}, {}, "sum");
  b.Output("y", Op("neg", {sum}));
  const Partitioned parts = Laid(b, {{"x", CutAt(1)}, {"w", CutAt(0)}, {"c", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("reduce_scatter product", "all_gather neg"));
  for (const Split& split : parts.splits) {
    for (const PendingAxis& p : split.pending) EXPECT_EQ(split.CutBy(p.axis), nullptr);
  }
}

TEST_F(Walk, AddsPendingSumsBeforeTheyAreComplete) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6)), w = b.Input("w", Matrix(6, 4));
  const Value first = Op("matmul", {x, w}, {}, "first");
  const Value second = Op("matmul", {x, w * 2.0}, {}, "second");
  b.Output("y", Op("add", {first, second}, {}, "sum"));
  const Partitioned parts = Laid(b, {{"x", CutAt(1)}, {"w", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce sum"));
}

// Two readers of a sum that only one of them could leave open: one all_reduce, not two.
TEST_F(Walk, CompletesASumOnceForAllItsReaders) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  const Value mean = Op("reduce_mean", {x}, {{"axes", {0}}}, "mean");
  b.Output("y", x - Reshape(mean, {1, 6}));
  b.Output("z", mean * 0.5);
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce mean", "all_gather sub"));
}

TEST_F(Walk, LeavesALargestElementPending) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  b.Output("y", Op("reduce_max", {x}, {{"axes", {0}}}, "most"));
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce most"));
  EXPECT_EQ(parts.local.producer(parts.local.outputs()[0].value)->attrs.text("reduce"), "max");
}

// A norm of gradients of which some are whole: one number is reduced, not one for each of them.
TEST_F(Walk, CompletesASumOfNumbersAtItsEnd) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6)), c = b.Input("c", Matrix(3, 3));
  const Value first = Sum(x) + Sum(c);
  const Value all = first + Sum(Square(x));
  b.Output("y", Op("sqrt", {Op("square", {all})}));
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}, {"c", {}}});
  EXPECT_EQ(parts.collectives.size(), 1u);
}

// (a0 + a1) (b0 + b1) is not a0 b0 + a1 b1.
TEST_F(Walk, CompletesSumsBeforeTheyAreMultiplied) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  const Value first = Op("reduce_sum", {x}, {{"axes", {0}}}, "first");
  const Value second = Op("reduce_sum", {x * 2.0}, {{"axes", {0}}}, "second");
  b.Output("y", first * second);
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce first", "all_reduce second"));
}

// The largest of negatives is not the negative of the largest.
TEST_F(Walk, CompletesALargestElementBeforeAnythingElse) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  const Value most = Op("reduce_max", {x}, {{"axes", {0}}}, "most");
  b.Output("y", most * -1.0);
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce most"));
}

// [B,T,C] -> [B*T,C]: rows of cut tokens are a cut in B blocks.
TEST_F(Walk, FollowsAnInnerDimensionThroughAReshape) {
  GraphBuilder b("g");
  const Value x = b.Input("x", {DType::kF64, {3, 4, 2}}), w = b.Input("w", Matrix(2, 5));
  const Value rows = Op("matmul", {Reshape(x, {12, 2}), w}, {}, "rows");
  b.Output("y", Op("reduce_sum", {Reshape(rows, {3, 4, 5})}, {{"axes", {0, 1}}}, "sum"));
  const Partitioned parts = Laid(b, {{"x", CutAt(1)}, {"w", {}}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_reduce sum"));
  EXPECT_EQ(parts.splits[static_cast<size_t>(graph_.FindValue("rows"))], CutAt(0, 3));
}

TEST_F(Walk, MovesAVariableToWhereItIsStored) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  const Value w = b.Parameter("w", Matrix(6, 4), Init::Normal(1));
  const Value y = MatMul(x, w);
  const Value dw = Op("matmul", {x, y}, {{"transpose_a", 1}}, "dw");
  b.Update(w, Op("sub", {w, dw * 0.1}, {}, "new_w"));
  b.Output("loss", Sum(y));
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}, {"w", {}}}, {{"w", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts),
              ElementsAre("all_gather w", "reduce_scatter dw", "all_reduce reduce_sum"));
  EXPECT_EQ(parts.local.type(parts.local.FindValue("w")).dims, (Dims{3, 4}));
}

TEST_F(Walk, DrawsTheNumbersOfEachSample) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  const Value rng = b.Input("rng", {DType::kI64, {3}});
  b.Output("y", Op("dropout", {x, rng}, {{"rate", 0.5}}, "kept"));
  const Partitioned parts = Laid(b, {{"x", CutAt(0)}});
  EXPECT_THAT(OpsOf(parts), ElementsAre("all_gather kept"));
}

TEST(Partition, RefusesAnUnevenCut) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(5, 6));
  b.Output("y", Relu(x));
  const Graph graph = *b.Build();
  Layout layout;
  layout.use[graph.FindValue("x")] = CutAt(0);
  const Result<Partitioned> parts = Partition(graph, layout, kMesh);
  ASSERT_FALSE(parts.ok());
  EXPECT_EQ(parts.status().message(),
            "g: 'x' is f64[5,6] and can't lie as [a,-] on a=2: each cut extent must be a multiple "
            "of its axis. hint: choose sizes that divide it");
}

TEST(Partition, OfOneDeviceHasNoCollectives) {
  GraphBuilder b("g");
  b.Output("y", Relu(b.Input("x", Matrix(4, 6))));
  const Result<Partitioned> parts = Partition(*b.Build(), {}, kMesh);
  ASSERT_TRUE(parts.ok());
  EXPECT_THAT(parts->collectives, IsEmpty());
  EXPECT_EQ(parts->local.nodes().size(), 1u);
}

// ---- normal form

TEST(NormalForm, AddsABiasBehindTheProduct) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 6));
  b.Output("y", b.Linear(x, 3, "fc"));
  const Result<Graph> form = NormalForm(*b.Build());
  ASSERT_TRUE(form.ok());
  ASSERT_EQ(form->nodes().size(), 2u);
  EXPECT_EQ(form->nodes()[0].inputs.size(), 2u);
  EXPECT_EQ(form->nodes()[1].op->name, "add");
  EXPECT_EQ(form->value(form->outputs()[0].value).name, "fc");
}

TEST(NormalForm, AddsProductsFirst) {
  GraphBuilder b("g");
  const Value x = b.Input("x", Matrix(4, 4)), w = b.Input("w", Matrix(4, 4));
  const Value some = Op("add", {x, Op("matmul", {x, w}, {}, "first")});
  b.Output("y", Op("add", {some, Op("matmul", {w, x}, {}, "second")}));
  const Result<Graph> form = NormalForm(*b.Build());
  ASSERT_TRUE(form.ok());
  const Node& last = form->nodes()[form->nodes().size() - 1];
  const Node& products = *form->producer(last.inputs[0]);
  EXPECT_EQ(form->value(products.inputs[0]).name, "first");
  EXPECT_EQ(form->value(products.inputs[1]).name, "second");
  EXPECT_EQ(form->value(last.inputs[1]).name, "x");
}

}  // namespace
}  // namespace ridge
