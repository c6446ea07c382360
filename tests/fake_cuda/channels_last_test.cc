// Plans for CUDA's backend with a library whose convolutions take either layout.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/backend/cuda/nominal_gpu.h"
#include "ridge/core/test_folder.h"
#include "ridge/models/model.h"
#include "ridge/train/job/job.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

const Settings kLarge = {{"RIDGE_FAKE_CUDA_DELAY_US", "0"}};
const cuda::LibrarySearch kFakeToolkit = {{RIDGE_FAKE_CUDA_FOLDER}, {}};

bool IsConv(const std::string& op) {
  return op.starts_with("conv") && !op.starts_with("conv_pool");
}

// Convolutions in channels-last, and in row-major; runs nothing.
class Convolutions : public cuda::KernelLibrary {
 public:
  const std::string& version() const override { return version_; }
  const std::string& path() const override { return version_; }
  bool Knows(const OpDef& op) const override { return IsConv(op.name); }
  void AddCandidates(const OpDef& op, const OpCall& call, std::span<const LayoutId>,
                     KernelCandidates& found) override {
    KernelChoice choice = RowMajorChoice(op, call, "fake." + op.name);
    choice.key = choice.kernel + CallKey(op, call);
    choice.in_place.clear();
    KernelChoice row_major = choice;
    choice.key += " channels_last";
    for (const size_t operand : {0, 1}) choice.input_layouts[operand] = cuda::kChannelsLast;
    choice.output_layouts[0] = cuda::kChannelsLast;
    found.choices.push_back(std::move(choice));
    row_major.key += " row_major";
    found.choices.push_back(std::move(row_major));
  }
  bool Makes(const KernelChoice& choice) const override {
    return choice.kernel.starts_with("fake.");
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef&, const OpCall&,
                                         const KernelChoice&) override {
    return Status(ErrorCode::kUnsupported, "it runs nothing");
  }

 private:
  const std::string version_ = "fake";
};

class ChannelsLast : public testing::TestWithParam<const char*> {
 protected:
  // Nodes that copy from one layout into the other: "image -> channels_last".
  std::vector<std::string> Reorders(const std::string& model, const std::string& precision) {
    const TempFolder folder;
    const FakeGpu gpu(kLarge);
    Result<cuda::KernelCompiler> compiler =
        cuda::KernelCompiler::Open(gpu.device->gpu(), folder.File("cubin"), kFakeToolkit);
    EXPECT_TRUE(compiler.ok()) << compiler.status().message();
    cuda::KernelLibraries libraries;
    libraries.push_back(std::make_unique<Convolutions>());
    const auto backend =
        cuda::MakeCudaBackend(*gpu.device, *std::move(compiler), std::move(libraries));
    Machine machine;
    machine.backend = backend.get();
    machine.profile = cuda::NominalGpuProfile();
    TrainOptions options;
    options.model = model;
    options.batch = 8;
    options.slices = "1";
    options.recompute = "off";
    options.precision = precision;
    const Result<Graph> graph = BuildModel(model, {.batch = 8});
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    const Result<PlannedJob> job = PlanTrainingOnly(options, *graph, machine);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return job.ok() ? ReordersOf(*backend, job->program) : std::vector<std::string>();
  }

 private:
  static std::vector<std::string> ReordersOf(const KernelQuery& kernels, const Program& program) {
    std::vector<std::string> found;
    for (const StepPlan& step : program.steps) {
      for (const PlannedNode& node : step.nodes) {
        if (node.op != "reorder" || node.choice.kernel == "copy") continue;
        const PlannedValue& from = step.values[static_cast<size_t>(node.inputs[0])];
        found.push_back(
            fmt::format("{} -> {}", from.name, kernels.LayoutName(node.choice.output_layouts[0])));
      }
    }
    return found;
  }
};

TEST_P(ChannelsLast, OnlyTheImageIsCopiedIntoIt) {
  const std::vector<std::string> reorders = Reorders("resnet18:image=64,classes=10", GetParam());
  ASSERT_EQ(reorders.size(), 1u) << fmt::format("{}", fmt::join(reorders, "\n"));
  EXPECT_TRUE(reorders[0].starts_with("image")) << reorders[0];
}

INSTANTIATE_TEST_SUITE_P(Precisions, ChannelsLast, testing::Values("f32", "bf16"));

}  // namespace
}  // namespace ridge::fake_cuda
