// Laws of steps whose small nodes run side by side, over random graphs.
#include "ridge/plan/parallel_regions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/core/process.h"
#include "ridge/core/threads.h"
#include "ridge/graph/autodiff.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/planner.h"
#include "ridge/runtime/executor.h"

namespace ridge {
namespace {

constexpr int kGraphs = 6, kSteps = 3;

// A training step of products and pointwise operators that read what was made anywhere before.
Graph RandomGraph(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t end) { return random() % end; };
  GraphBuilder b("random");
  const Value x = b.Input("x", {DType::kF32, {17, 48}}, {"batch", ""});
  const Value lr = b.Input("lr", {DType::kF32, {}});
  std::vector<Value> made{x};
  for (int i = 0; i < 24; ++i) {
    const Value from = made[below(made.size())], other = made[below(made.size())];
    switch (below(4)) {
      case 0:
        made.push_back(from + other);
        break;
      case 1:
        made.push_back(Relu(from));
        break;
      default:
        made.push_back(Tanh(b.Linear(from, 48, "fc" + std::to_string(i))));
        break;
    }
  }
  Value sum = made[0];
  for (size_t i = 1; i < made.size(); ++i) sum = sum + made[i];
  const Value loss = Mean(sum * sum);
  b.Output("loss", loss);
  std::vector<Value> params;
  for (ValueId id : b.graph().ValuesOfKind(ValueKind::kParameter)) params.push_back(b.At(id));
  const auto grads = AppendGradients(b, loss, params);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  for (size_t i = 0; i < params.size(); ++i)
    b.Update(params[i], Op("sgd_update", {params[i], (*grads)[i], lr}));
  auto graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *graph;
}

Program PlanWith(const Graph& graph, Backend& backend, int streams) {
  const PlanOptions options = {.inter_op = {streams, /*always=*/true}};
  auto program = PlanProgram("random", {{"train", graph}}, backend, backend.nominal(), options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return *program;
}

size_t NodesInRegions(const StepPlan& step) {
  size_t count = 0;
  for (const NodePlace& place : NodePlaces(step)) count += place.parallel >= 0 ? 1 : 0;
  return count;
}

// Loss and variables after some steps, as bytes.
std::map<std::string, std::vector<std::byte>> Train(const Graph& graph, int threads, int streams) {
  auto backend = MakeCpuBackend(threads);
  EXPECT_TRUE(backend.ok()) << backend.status().message();
  Program program = PlanWith(graph, **backend, streams);
  EXPECT_EQ(NodesInRegions(program.steps[0]) > 0, streams > 1);
  auto executor = Executor::Create(std::move(program), **backend);
  EXPECT_TRUE(executor.ok()) << executor.status().message();
  EXPECT_TRUE((*executor)->transfers().Initialize(/*seed=*/5).ok());
  auto* x = static_cast<float*>((*executor)->transfers().Input("x"));
  for (int i = 0; i < 17 * 48; ++i) x[i] = std::sin(static_cast<float>(i));
  *static_cast<float*>((*executor)->transfers().Input("lr")) = 0.01F;
  for (int step = 0; step < kSteps; ++step) EXPECT_TRUE((*executor)->Run(0, 0).ok());
  std::map<std::string, std::vector<std::byte>> result;
  const auto* loss = static_cast<const std::byte*>(*(*executor)->transfers().Output(0, "loss"));
  result["loss"].assign(loss, loss + sizeof(float));
  for (const PersistentValue& value : (*executor)->program().persistent) {
    const std::byte* bytes = (*executor)->arena().data() + value.offset_bytes;
    if (value.kind == ValueKind::kParameter)
      result[value.name].assign(bytes, bytes + value.size_bytes);
  }
  return result;
}

TEST(ParallelRegions, BitsAreThoseOfTheSameKernelsOneAfterTheOther) {
  const int streams = AvailableThreads();
  if (streams < 2) GTEST_SKIP() << "not on this machine: one thread";
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = RandomGraph(seed);
    EXPECT_EQ(Train(graph, /*threads=*/1, streams), Train(graph, /*threads=*/1, /*streams=*/1))
        << seed;
  }
}

TEST(ParallelRegions, RepeatsBitForBitBesideNodesOnAllThreads) {
  const int threads = AvailableThreads();
  if (threads < 2) GTEST_SKIP() << "not on this machine: one thread";
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = RandomGraph(seed);
    EXPECT_EQ(Train(graph, threads, threads), Train(graph, threads, threads)) << seed;
  }
}

struct Bytes {
  int64_t begin, end;
  int stream;
  bool written;
};

std::vector<Bytes> BytesOfRegion(const StepPlan& step, int region) {
  std::vector<Bytes> all;
  const std::vector<NodePlace> places = NodePlaces(step);
  for (size_t n = 0; n < places.size(); ++n) {
    if (places[n].parallel != region) continue;
    const PlannedNode& node = step.nodes[n];
    const int stream = places[n].stream;
    const auto add = [&](int v, bool written) {
      const PlannedValue& value = step.values[static_cast<size_t>(v)];
      all.push_back({value.offset_bytes, value.offset_bytes + value.size_bytes, stream, written});
    };
    for (const int input : node.inputs) {
      if (input >= 0) add(input, false);
    }
    for (const int output : node.outputs) add(output, true);
    if (node.workspace_offset >= 0) {
      all.push_back({node.workspace_offset, node.workspace_offset + node.choice.workspace_bytes,
                     stream, true});
    }
  }
  return all;
}

bool Collide(const Bytes& a, const Bytes& b) {
  return a.stream != b.stream && (a.written || b.written) && a.begin < b.end && b.begin < a.end;
}

TEST(ParallelRegions, StreamsShareNoByteThatOneOfThemWrites) {
  auto backend = MakeCpuBackend(1);
  ASSERT_TRUE(backend.ok());
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Program program = PlanWith(RandomGraph(seed), **backend, /*streams=*/3);
    const StepPlan& step = program.steps[0];
    const size_t nodes = step.nodes.size();  // at least as many as parallel regions
    for (int region = 0; region < static_cast<int>(nodes); ++region) {
      const std::vector<Bytes> all = BytesOfRegion(step, region);
      for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = 0; j < i; ++j) EXPECT_FALSE(Collide(all[i], all[j])) << seed;
      }
    }
  }
}

// Updates that come after the loss must not have happened when it is a NaN.
TEST(ParallelRegions, NoRegionGoesBeyondTheLoss) {
  auto backend = MakeCpuBackend(1);
  ASSERT_TRUE(backend.ok());
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Program program = PlanWith(RandomGraph(seed), **backend, /*streams=*/2);
    const StepPlan& step = program.steps[0];
    const int loss = step.outputs.at("loss");
    const std::vector<NodePlace> places = NodePlaces(step);
    for (size_t n = 0; n < places.size(); ++n) {
      if (step.nodes[n].outputs[0] != loss || places[n].parallel < 0) continue;
      EXPECT_EQ(places[n].last, static_cast<int>(n)) << seed;
    }
  }
}

TEST(ParallelRegions, TimedNodesAddUpToNoMoreThanTheRun) {
  auto backend = MakeCpuBackend(1);
  ASSERT_TRUE(backend.ok());
  auto executor = Executor::Create(PlanWith(RandomGraph(0), **backend, /*streams=*/2), **backend);
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  ASSERT_TRUE((*executor)->transfers().Initialize(/*seed=*/5).ok());
  (*executor)->SetTiming(true);
  const double before = MonotonicSeconds();
  ASSERT_TRUE((*executor)->Run(0, 0).ok());
  const double run_s = MonotonicSeconds() - before;
  double sum_s = 0;
  for (const double seconds : (*executor)->NodeSeconds(0)) {
    EXPECT_GE(seconds, 0);
    sum_s += seconds;
  }
  EXPECT_GT(sum_s, 0);
  EXPECT_LE(sum_s, run_s);
}

TEST(ParallelRegions, SecondsAddUpToTheSteps) {
  StepPlan step;
  step.nodes.resize(4);
  const double seconds[] = {5, 3, 1, 2};
  for (size_t n = 0; n < 4; ++n) step.nodes[n].modelled_s = seconds[n];
  Region parallel = Region::Sequence(1, 4);
  parallel.kind = Region::Kind::kParallel;
  parallel.parts = {Region::Sequence(1, 3), Region::Sequence(3, 4)};
  step.body = Region::Sequence(0, 4);
  step.body.parts = {Region::Sequence(0, 1), parallel};
  EXPECT_DOUBLE_EQ(PlannedSeconds(step), 5 + 4);  // streams of 4 and 2 s
  EXPECT_DOUBLE_EQ(PlannedNodeSeconds(step)[0], 5);
  step.nodes[3].measured_s = 6;
  EXPECT_DOUBLE_EQ(PlannedSeconds(step), 5 + 6);
  EXPECT_DOUBLE_EQ(ModelledSeconds(step), 5 + 4);
}

}  // namespace
}  // namespace ridge
