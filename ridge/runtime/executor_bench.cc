// What a node costs beside its work: a chain of nodes of 16 numbers, one thread of the team at
// work, and a whole small network.  Per node in nanoseconds; issue: under 1000, the network under
// 20 us.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/core/threads.h"
#include "ridge/graph/builder.h"
#include "ridge/plan/planner.h"
#include "ridge/runtime/executor.h"

namespace ridge {
namespace {

std::unique_ptr<Executor> Prepare(Result<Graph> graph, Backend& backend) {
  if (!graph.ok()) std::abort();
  auto program = PlanProgram("bench", {{"run", std::move(*graph)}}, backend, backend.nominal(), {});
  if (!program.ok()) std::abort();
  auto executor = Executor::Create(std::move(*program), backend);
  if (!executor.ok()) std::abort();
  if (!(*executor)->transfers().Initialize(0).ok()) std::abort();
  return std::move(*executor);
}

void Run(benchmark::State& state, Result<Graph> graph) {
  const auto backend = MakeCpuBackend(AvailableThreads());
  const auto executor = Prepare(std::move(graph), **backend);
  for (auto _ : state) {
    if (!executor->Run(0, /*slot=*/0).ok()) state.SkipWithError("run");
  }
  const auto nodes = static_cast<double>(executor->program().steps[0].nodes.size());
  state.counters["nodes"] = nodes;
  state.counters["s/node"] = benchmark::Counter(
      nodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

constexpr int kNodes = 100;
const TensorType kTiny{DType::kF32, {1, 16}};

void BM_Pointwise(benchmark::State& state) {
  GraphBuilder b("chain");
  Value x = b.Input("x", kTiny);
  for (int i = 0; i < kNodes; ++i) x = Relu(x);
  b.Output("y", x);
  Run(state, b.Build());
}
BENCHMARK(BM_Pointwise);

void BM_Softmax(benchmark::State& state) {
  GraphBuilder b("chain");
  Value x = b.Input("x", kTiny);
  for (int i = 0; i < kNodes; ++i) x = Softmax(x);
  b.Output("y", x);
  Run(state, b.Build());
}
BENCHMARK(BM_Softmax);

void BM_Matmul(benchmark::State& state) {
  GraphBuilder b("chain");
  Value x = b.Input("x", kTiny);
  const Value w = b.Parameter("w", {DType::kF32, {16, 16}}, Init::Normal(0.1));
  for (int i = 0; i < kNodes; ++i) x = Op("matmul", {x, w});
  b.Output("y", x);
  Run(state, b.Build());
}
BENCHMARK(BM_Matmul);

// 784-64-relu-10 at batch 1, every node by itself.
void BM_Network(benchmark::State& state) {
  GraphBuilder b("network");
  const Value x = b.Input("x", {DType::kF32, {1, 784}});
  b.Output("y", b.Linear(Relu(b.Linear(x, 64, "fc1")), 10, "fc2"));
  Run(state, b.Build());
}
BENCHMARK(BM_Network);

}  // namespace
}  // namespace ridge
