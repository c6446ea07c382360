#include "ridge/measure/candidate_recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/graph/builder.h"
#include "ridge/plan/planner.h"

namespace ridge {
namespace {

// Towers that do not wait for each other.
Graph Towers() {
  GraphBuilder b("towers");
  const Value x = b.Input("x", {DType::kF32, {16, 64}});
  for (int tower = 0; tower < 4; ++tower) {
    const std::string name = "t" + std::to_string(tower);
    b.Output(name, Relu(b.Linear(Relu(b.Linear(x, 64, name + ".a")), 64, name + ".b")));
  }
  return *b.Build();
}

// What a tuner measures must be what a run plans.
TEST(CandidateRecorder, PlansThroughItAreThoseOfTheBackend) {
  const auto backend = MakeCpuBackend(2);
  ASSERT_TRUE(backend.ok());
  CandidateRecorder recorder(**backend);
  const auto nodes = [&](KernelQuery& kernels) {
    const PlanOptions options = {.inter_op = {.streams = 2, .always = true}};
    const auto program =
        PlanProgram("towers", {{"eval", Towers()}}, kernels, kernels.nominal(), options);
    EXPECT_TRUE(program.ok()) << program.status().message();
    std::vector<std::string> texts;
    const StepPlan& step = program->steps[0];
    const std::vector<NodePlace> places = NodePlaces(step);
    for (size_t n = 0; n < places.size(); ++n) {
      texts.push_back(fmt::format("{} {} {} {}", step.nodes[n].name, step.nodes[n].choice.key,
                                  places[n].parallel, places[n].stream));
    }
    return texts;
  };
  const std::vector<std::string> want = nodes(**backend);
  EXPECT_EQ(nodes(recorder), want);
  EXPECT_NE(want.back().find(" 0 "), std::string::npos) << "no section in " << want.back();
}

}  // namespace
}  // namespace ridge
