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
NamedBytes VariablesAfter(const TrainOptions& options, int lanes, int left_out_edge = 0) {
  const FakeGpu gpu(
      Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"},
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
    EXPECT_TRUE(runner.Run({.lr = 0.05, .updates = i, .seed = 3}).ok());
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
    for (const int lanes : {2, 4, 16}) {
      for (const auto& [name, bytes] : VariablesAfter(options, lanes))
        EXPECT_TRUE(bytes == want.at(name))
            << name << ": " << lanes << " lanes, " << slices << " slices";
    }
  }
}

TEST(LanesTest, AnEdgeThatIsMissingShows) {
  constexpr int kEdges = 40;
  TrainOptions options;
  options.model = "mlp:hidden=8,layers=2,inputs=12,classes=3";
  options.batch = 4;
  options.recompute = "off";
  const NamedBytes want = VariablesAfter(options, 4);
  int shown = 0;
  for (int edge = 1; edge <= kEdges; ++edge) shown += VariablesAfter(options, 4, edge) != want;
  EXPECT_GT(shown, 0);
  std::cerr << "SHOWN " << shown << "\n";
}

INSTANTIATE_TEST_SUITE_P(Models, Lanes,
                         testing::Values("mlp:hidden=8,layers=2,inputs=12,classes=3",
                                         "gpt:vocab=20,context=4,hidden=8,layers=2,heads=2",
                                         "cnn:filters=4,image=8,classes=3",
                                         "lstm:vocab=20,tokens=3,hidden=8"));

}  // namespace
}  // namespace ridge::fake_cuda
