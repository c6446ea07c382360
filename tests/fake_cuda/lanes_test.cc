// Recorded steps in lanes: what runs at once in any order leaves the bits of one order.
#include <map>

#include "ridge/backend/cuda/nominal_gpu.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/models/model.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/step_runner.h"
#include "tests/fake_cuda/test_backend.h"

namespace ridge::fake_cuda {
namespace {

constexpr int kUpdates = 6;

using NamedBytes = std::map<std::string, std::string>;  // of variables

// The variables behind some updates on inputs that are 0, with as many lanes; without one edge.
Result<NamedBytes> VariablesAfter(const TrainOptions& options, int lanes, int left_out_edge = 0) {
  const FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"},
                             {"RIDGE_FAKE_CUDA_LEAVE_OUT_EDGE", std::to_string(left_out_edge)}});
  const auto reference = MakeReferenceBackend();
  const auto backend = MakeCudaBackend(*reference, gpu);
  Machine machine;
  machine.backend = backend.get();
  machine.profile = cuda::NominalGpuProfile();
  const Result<Graph> graph = BuildModel(options.model, {.batch = options.batch});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const Result<PlannedJob> job = PlanTrainingOnly(options, *graph, machine);
  EXPECT_TRUE(job.ok()) << job.status().message();
  const auto executor = Executor::Create(job->program, *backend);
  EXPECT_TRUE(executor.ok()) << executor.status().message();
  Transfers& transfers = (*executor)->transfers();
  EXPECT_TRUE(transfers.Initialize(/*seed=*/3).ok());
  (*executor)->SetLanes(lanes);
  StepRunner runner(**executor, *job);
  for (int i = 0; i < kUpdates; ++i)
    RIDGE_RETURN_IF_ERROR(runner.Run({.lr = 0.05, .updates = i, .seed = 3}).status());
  NamedBytes variables;
  for (const PersistentValue& value : job->program.persistent) {
    if (value.kind == ValueKind::kInput) continue;
    std::string bytes(static_cast<size_t>(value.size_bytes), '\0');
    gpu.device->stream(0).Download(bytes.data(), (*executor)->arena().data() + value.offset_bytes,
                                   value.size_bytes);
    EXPECT_TRUE(gpu.device->stream(0).Synchronize().ok());
    variables[value.name] = std::move(bytes);
  }
  EXPECT_GT(gpu.hooks.calls("cuGraphLaunch"), 0);
  return variables;
}

class Lanes : public testing::TestWithParam<const char*> {};

TEST_P(Lanes, LeaveTheBitsOfOneOrder) {
  TrainOptions options;
  options.model = GetParam();
  options.batch = 4;
  options.recompute = "off";
  for (const char* slices : {"1", "2"}) {
    options.slices = slices;
    const auto want = VariablesAfter(options, 1);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (const int lanes : {2, 4, 16}) {
      const auto variables = VariablesAfter(options, lanes);
      ASSERT_TRUE(variables.ok()) << variables.status().message();
      for (const auto& [name, bytes] : *variables)
        EXPECT_TRUE(bytes == want->at(name))
            << name << ": " << lanes << " lanes, " << slices << " slices";
    }
  }
}

// Edges that others imply do not show, nor those of work that comes too late to do harm.
TEST(LanesTest, AnEdgeThatIsMissingShows) {
  constexpr int kEdges = 60;
  TrainOptions options;
  options.model = "mlp:hidden=8,layers=2,inputs=12,classes=3";
  options.batch = 4;
  options.recompute = "off";
  const auto want = VariablesAfter(options, 4);
  ASSERT_TRUE(want.ok()) << want.status().message();
  int other_bits = 0, refused = 0;
  for (int edge = 1; edge <= kEdges; ++edge) {
    const auto variables = VariablesAfter(options, 4, edge);
    refused += variables.ok() ? 0 : 1;
    other_bits += variables.ok() && *variables != *want ? 1 : 0;
  }
  EXPECT_GT(other_bits, kEdges / 3);
  EXPECT_GT(refused, 0) << "an end that nothing waits for";
}

INSTANTIATE_TEST_SUITE_P(Models, Lanes,
                         testing::Values("mlp:hidden=8,layers=2,inputs=12,classes=3",
                                         "gpt:vocab=20,context=4,hidden=8,layers=2,heads=2",
                                         "cnn:filters=4,image=8,classes=3",
                                         "lstm:vocab=20,tokens=3,hidden=8"));

}  // namespace
}  // namespace ridge::fake_cuda
