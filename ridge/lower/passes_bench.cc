// Time of each pass, of parsing and of printing, against the number of nodes: all near linear.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "ridge/graph/builder.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/text.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

// A long chain with side branches: products, sums and pointwise nodes.
Graph LongGraph(int64_t nodes) {
  GraphBuilder b("long");
  std::vector<Value> values = {b.Input("x", {DType::kF32, {8, 8}}),
                               b.Input("y", {DType::kF32, {8, 8}})};
  std::mt19937 random(5);
  for (int64_t i = 0; i < nodes; ++i) {
    const size_t back = 1 + random() % std::min<size_t>(values.size(), 40);
    const Value a = values.back(), c = values[values.size() - back];
    const uint32_t kind = random() % 8;
    values.push_back(kind == 0 ? MatMul(a, c) : kind < 4 ? Tanh(a) : a + c);
  }
  b.Output("y_out", values.back());
  return *b.Build();
}

void BM_Pass(benchmark::State& state, const char* name) {
  const Graph graph = LongGraph(state.range(0));
  const PassSelection only = *ParsePassSpec(std::string("only:") + name);
  for (auto _ : state) benchmark::DoNotOptimize(RunPasses(graph, only, UnlimitedRules()));
  state.SetComplexityN(state.range(0));
}
BENCHMARK_CAPTURE(BM_Pass, fold, "fold")->RangeMultiplier(10)->Range(1000, 100000)->Complexity();
BENCHMARK_CAPTURE(BM_Pass, algebra, "algebra")
    ->RangeMultiplier(10)
    ->Range(1000, 100000)
    ->Complexity();
BENCHMARK_CAPTURE(BM_Pass, cse, "cse")->RangeMultiplier(10)->Range(1000, 100000)->Complexity();
BENCHMARK_CAPTURE(BM_Pass, dce, "dce")->RangeMultiplier(10)->Range(1000, 100000)->Complexity();
BENCHMARK_CAPTURE(BM_Pass, fuse, "fuse")->RangeMultiplier(10)->Range(1000, 100000)->Complexity();

void BM_Print(benchmark::State& state) {
  const Graph graph = LongGraph(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(PrintGraph(graph));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_Print)->RangeMultiplier(10)->Range(1000, 100000)->Complexity();

void BM_Parse(benchmark::State& state) {
  const std::string text = PrintGraph(LongGraph(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(ParseGraph(text, "long.ridge"));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_Parse)->RangeMultiplier(10)->Range(1000, 100000)->Complexity();

}  // namespace
}  // namespace ridge
