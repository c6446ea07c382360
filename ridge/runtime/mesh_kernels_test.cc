// Moves of a value between splits, on ranks that are threads: each rank has its part of the whole.
#include "ridge/runtime/mesh_kernels.h"

#include <gtest/gtest.h>

#include <mutex>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/dist/test_ranks.h"
#include "ridge/graph/builder.h"
#include "ridge/lower/roofline.h"
#include "ridge/partition/partition.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/plan/planner.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/runtime/executor.h"

namespace ridge {
namespace {

const Mesh kMesh{{{"d", 2}, {"t", 3}}};
constexpr int kD = 0, kT = 1;

Split Of(std::initializer_list<Cut> cuts, std::initializer_list<int> pending = {}) {
  Split split;
  for (const Cut& cut : cuts) split.Add(cut);
  for (const int axis : pending) split.AddPending({axis, Factor::Over::kSum});
  return split;
}

class Moves : public testing::Test {
 protected:
  // y = x, of which each rank is given its part by `have` and has `want`.  x is 1, 2, 3, ...
  void ExpectMoved(TensorType type, const Split& have, const Split& want) {
    GraphBuilder b("g");
    b.Output("y", Op("neg", {b.Input("x", type)}, {}, "negated"));
    Result<Graph> graph = b.Build();
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Layout layout;
    layout.use[graph->FindValue("x")] = have;
    layout.use[graph->FindValue("negated")] = want;
    layout.outputs["y"] = want;
    const Result<Partitioned> parts = Partition(*graph, layout, kMesh);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    RunRanks(static_cast<int>(kMesh.devices()), [&](Communicator& ranks) {
      const MeshPlace place = {kMesh, ranks.rank()};
      const std::vector<double> got = Run(*parts, type, have, place, ranks);
      const std::vector<int64_t> places = PlacesOfPart(type.dims, want, kMesh, At(place));
      const std::lock_guard<std::mutex> lock(mutex_);
      ASSERT_EQ(got.size(), places.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], -static_cast<double>(places[i] + 1)) << "rank " << place.device;
    });
  }

  static std::vector<int64_t> At(const MeshPlace& place) {
    return place.mesh.CoordinatesOf(place.device);
  }

  std::vector<double> Run(const Partitioned& parts, const TensorType& type, const Split& have,
                          const MeshPlace& place, Communicator& ranks) {
    const auto backend = MakeCpuBackend(1, ConvKernels::kDirect);
    MeshKernels kernels(**backend);
    Program program = *PlanProgram("g", {{"run", parts.local}}, kernels, (*backend)->nominal(), {});
    program.place = place;
    int64_t planned = 0;
    for (const Collective& of : CollectivesOf(program)) planned += of.sent_bytes;
    const auto made = Executor::Create(std::move(program), **backend, &ranks);
    Executor* executor = made->get();
    EXPECT_TRUE(executor->transfers().Initialize(0).ok());
    const std::vector<int64_t> places = PlacesOfPart(type.dims, have, kMesh, At(place));
    void* x = executor->transfers().Input("x", 0);
    for (size_t i = 0; i < places.size(); ++i)
      StoreFromDouble(type.dtype, x, static_cast<int64_t>(i), static_cast<double>(places[i] + 1));
    const int64_t before = ranks.sent_bytes();
    EXPECT_TRUE(executor->Run(0, 0).ok());
    EXPECT_EQ(ranks.sent_bytes() - before, planned) << "rank " << place.device;
    const TensorType& result = executor->OutputType(0, "y");
    const void* y = *executor->transfers().Output(0, "y");
    std::vector<double> numbers;
    for (int64_t i = 0; i < result.elements(); ++i)
      numbers.push_back(LoadAsDouble(result.dtype, y, i));
    return numbers;
  }

  std::mutex mutex_;
};

TEST_F(Moves, GatherParts) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64}) {
    ExpectMoved({dtype, {12, 6}}, Of({{0, kD, 1}}), {});
    ExpectMoved({dtype, {12, 6}}, Of({{1, kT, 1}}), {});
    ExpectMoved({dtype, {12, 6}}, Of({{0, kD, 1}, {1, kT, 1}}), Of({{0, kD, 1}}));
  }
  ExpectMoved({DType::kF32, {18, 5}}, Of({{0, kT, 3}}), {});
  ExpectMoved({DType::kF32, {36, 2}}, Of({{0, kD, 1}, {0, kT, 6}}), Of({{0, kD, 1}}));
}

TEST_F(Moves, CutLocally) {
  ExpectMoved({DType::kF32, {12, 6}}, {}, Of({{1, kT, 1}}));
  ExpectMoved({DType::kF32, {18, 5}}, {}, Of({{0, kT, 3}}));
  ExpectMoved({DType::kF32, {12, 6}}, Of({{0, kD, 1}}), Of({{0, kD, 1}, {1, kT, 1}}));
}

TEST_F(Moves, SendPartsToAnotherDimension) {
  ExpectMoved({DType::kF32, {12, 6}}, Of({{0, kT, 1}}), Of({{1, kT, 1}}));
  ExpectMoved({DType::kF64, {12, 6, 5}}, Of({{1, kD, 3}}), Of({{0, kD, 1}}));
  ExpectMoved({DType::kF32, {12, 6, 2}}, Of({{0, kD, 1}, {1, kT, 1}}),
              Of({{0, kT, 1}, {2, kD, 1}}));
}

// Every rank has a share of each number, so the sum is what it was: shares of 2 and of 4 are exact.
class Sums : public Moves {
 protected:
  void ExpectSummed(const TensorType& type, const Split& want) {
    GraphBuilder b("g");
    const Value x = b.Input("x", {type.dtype, {6, type.dims[0], type.dims[1]}});
    b.Output("y", Op("reduce_sum", {x}, {{"axes", std::vector<int64_t>{0}}}, "sum"));
    Result<Graph> graph = b.Build();
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Layout layout;
    layout.use[graph->FindValue("x")] = Of({{0, kD, 1}, {0, kT, 2}});
    layout.use[graph->FindValue("sum")] = want;
    layout.outputs["y"] = want;
    const Result<Partitioned> parts = Partition(*graph, layout, kMesh);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    RunRanks(static_cast<int>(kMesh.devices()), [&](Communicator& ranks) {
      const MeshPlace place = {kMesh, ranks.rank()};
      const std::vector<double> got = Run(*parts, {type.dtype, {6, type.dims[0], type.dims[1]}},
                                          layout.use.at(graph->FindValue("x")), place, ranks);
      const std::vector<int64_t> places = PlacesOfPart(type.dims, want, kMesh, At(place));
      const std::lock_guard<std::mutex> lock(mutex_);
      ASSERT_EQ(got.size(), places.size());
      // x is 1, 2, 3, ...: six of a column, `elements` apart.
      const auto apart = static_cast<double>(type.elements());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], 6 * static_cast<double>(places[i] + 1) + 15 * apart);
    });
  }
};

TEST_F(Sums, AreTheSameAtAllRanks) {
  ExpectSummed({DType::kF32, {7, 5}}, {});
  ExpectSummed({DType::kF64, {1, 1}}, {});  // fewer numbers than ranks
  ExpectSummed({DType::kF64, {12, 6}}, {});
}

TEST_F(Sums, AreCompleteWhereTheyArePartsOf) {
  ExpectSummed({DType::kF32, {12, 6}}, Of({{0, kD, 1}}));
  ExpectSummed({DType::kF32, {12, 6}}, Of({{1, kD, 1}}));
  ExpectSummed({DType::kF64, {12, 6}}, Of({{0, kD, 1}, {1, kT, 1}}));
  ExpectSummed({DType::kF64, {12, 6}}, Of({{0, kT, 2}}));
}

TEST(MeshKernels, NeedTheOtherRanks) {
  PlannedNode node;
  node.def = &AllReduceOp();
  node.call.attrs = {{"axis", std::string("t")}, {"ranks", int64_t{3}}};
  const auto backend = MakeCpuBackend(1, ConvKernels::kDirect);
  double spent_s = 0;
  const MeshPlace place = {kMesh, 0};
  const auto kernel = MakeMeshKernel(node, "train", place, **backend, nullptr, spent_s);
  EXPECT_EQ(kernel->Enqueue((*backend)->device().stream(0), {}).message(),
            "a step of 6 ranks runs on all of them together");
}

}  // namespace
}  // namespace ridge
