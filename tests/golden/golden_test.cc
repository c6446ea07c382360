// Gradients of every parameter, ten SGD losses and running statistics against PyTorch in f64.
//
// The reference backend in f64 must agree to 1e-6 of the largest element; the CPU backend in f32 to
// 2e-3: f32 has 6e-8 per operation, and sums over thousands of terms, batch norm over few values
// and ten steps of training multiply it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/threads.h"
#include "ridge/graph/autodiff.h"
#include "ridge/models/model.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/scalar_inputs.h"
#include "tests/golden/counter.h"
#include "tests/golden/golden_file.h"

namespace ridge {
namespace {

struct GoldenCase {
  const char* file;
  bool reference;  // else CPU
  DType dtype;
  double tolerance;
};

std::ostream& operator<<(std::ostream& out, const GoldenCase& c) {
  return out << c.file << (c.reference ? " reference " : " cpu ") << DTypeName(c.dtype);
}

// Any profile will do: it moves no number.
DeviceProfile GoldenProfile() {
  DeviceProfile profile;
  profile.peak_flops_per_s = {{"f32", 1e11}, {"f64", 1e10}};
  profile.memory = {{"DRAM", int64_t{1} << 40, 1e10}};
  return profile;
}

// The gradient of each parameter as an output of its name.
Result<NamedGraph> GradientGraph(const Graph& forward) {
  GraphBuilder b(forward);
  std::vector<Value> params;
  for (ValueId id : forward.ValuesOfKind(ValueKind::kParameter)) params.push_back(b.At(id));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> grads,
                         AppendGradients(b, b.At(forward.FindOutput("loss")), params));
  b.graph().ClearOutputs();
  b.graph().ClearUpdates();  // the statistics belong to the training steps
  for (size_t i = 0; i < params.size(); ++i) b.Output(forward.value(params[i].id).name, grads[i]);
  RIDGE_ASSIGN_OR_RETURN(Graph graph, b.Build());
  return NamedGraph{"gradients", std::move(graph)};
}

Result<std::unique_ptr<Executor>> MakeExecutor(const GoldenFile& file, DType dtype,
                                               Backend& backend) {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward,
                         BuildModel(file.model, {.batch = file.batch, .dtype = dtype}));
  OptimizerOptions sgd;
  sgd.name = "sgd";
  sgd.momentum = file.momentum;
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs,
                         BuildTrainingGraphs(forward, {.optimizer = sgd}));
  RIDGE_ASSIGN_OR_RETURN(NamedGraph gradients, GradientGraph(forward));
  graphs.push_back(std::move(gradients));
  RIDGE_ASSIGN_OR_RETURN(Program program,
                         PlanGraphs(file.model, std::move(graphs), /*passes=*/"", DType::kF32,
                                    {.backend = &backend, .profile = GoldenProfile()}));
  return Executor::Create(std::move(program), backend);
}

void Store(size_t index, const std::vector<double>& from, Executor& executor) {
  const TensorType& type = executor.program().persistent[index].type;
  ConvertFromDouble(type.dtype, from.data(), executor.transfers().Edit(index), type.elements());
  EXPECT_TRUE(executor.transfers().Commit(index).ok());
}

// Slot k has batch k.
void FillInput(size_t index, Executor& executor) {
  const PersistentValue& value = executor.program().persistent[index];
  const std::string name = value.name + "." + std::to_string(value.slot);
  std::vector<double> values = CounterUniform(name, value.type.elements());
  for (double& v : values) v = value.name == "label" ? std::floor(v * 10) : 2 * v - 1;
  Store(index, values, executor);
}

void FillPersistent(Executor& executor) {
  EXPECT_TRUE(executor.transfers().Initialize(/*seed=*/0).ok());  // statistics and momentum
  const std::vector<PersistentValue>& persistent = executor.program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    const PersistentValue& value = persistent[i];
    if (value.kind == ValueKind::kParameter)
      Store(i, CounterWeight(value.name, value.type.dims), executor);
    const bool is_input = value.name == "image" || value.name == "points" || value.name == "label";
    if (is_input) FillInput(i, executor);
  }
}

class GoldenTest : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
#ifndef NDEBUG
    // Convolutions in plain loops: 14 s when optimized, minutes when not.
    if (GetParam().reference && GetParam().file == std::string("resnet18"))
      GTEST_SKIP() << "runs in release builds";
#endif
    Result<GoldenFile> file = ReadGoldenFile(GetParam().file);
    ASSERT_TRUE(file.ok()) << file.status().message();
    golden_ = std::move(*file);
    backend_ =
        GetParam().reference
            ? MakeReferenceBackend()
            : std::move(*MakeCpuBackend(std::min(2, AvailableThreads()), ConvKernels::kDirect));
    auto executor = MakeExecutor(golden_, GetParam().dtype, *backend_);
    ASSERT_TRUE(executor.ok()) << executor.status().message();
    executor_ = std::move(*executor);
    FillPersistent(*executor_);
  }

  // Remembers the largest difference under `what`, for the report of --gtest_output.
  void Expect(const std::string& what, const std::string& name, const GoldenTensor& golden,
              const TensorType& type, const void* data) {
    ASSERT_NE(data, nullptr) << what << " '" << name << "'";
    ASSERT_EQ(type.dims, golden.dims) << what << " '" << name << "'";
    const GoldenDifference difference = CompareWithGolden(golden, type, data);
    EXPECT_LE(difference.Largest(), GetParam().tolerance)
        << what << " '" << name << "': " << difference.ToString();
    largest_[what] = std::max(largest_[what], difference.Largest());
  }

  void CheckGradients() {
    const int step = executor_->StepIndex("gradients");
    const Status status = executor_->Run(step, /*slot=*/0);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto& outputs = executor_->program().steps[static_cast<size_t>(step)].outputs;
    ASSERT_EQ(outputs.size(), golden_.gradients.size());
    for (const auto& [name, golden] : golden_.gradients) {
      ASSERT_TRUE(outputs.contains(name)) << "no parameter '" << name << "'";
      Expect("gradient", name, golden, executor_->OutputType(step, name),
             *executor_->transfers().Output(step, name));
    }
  }

  void CheckLoss(size_t update) {
    const int slot = static_cast<int>(update % 2);
    const int step = executor_->StepIndex("train");
    scalars_->Write(slot, golden_.lr, static_cast<int64_t>(update), {});
    const Status status = executor_->Run(step, slot);
    ASSERT_TRUE(status.ok()) << status.message();
    const double loss = *executor_->transfers().Scalar(step, "loss");
    const double golden = golden_.losses[update];
    const double difference = std::abs(loss - golden) / golden;
    EXPECT_LE(difference, GetParam().tolerance)
        << "loss of step " << update << ": " << loss << " against PyTorch's " << golden;
    largest_["loss"] = std::max(largest_["loss"], difference);
  }

  void CheckStatistics() {
    size_t count = 0;
    for (const PersistentValue& value : executor_->program().persistent)
      count += value.role == ValueRole::kStatistic ? 1 : 0;
    ASSERT_EQ(count, golden_.statistics.size());
    for (const auto& [name, golden] : golden_.statistics) {
      const PersistentValue* value = executor_->FindPersistent(name);
      ASSERT_NE(value, nullptr) << "no statistic '" << name << "'";
      Expect("statistic", name, golden, value->type, *executor_->transfers().Read(name));
    }
  }

  GoldenFile golden_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ScalarInputs> scalars_;
  std::map<std::string, double> largest_;
};

TEST_P(GoldenTest, GradientsLossesAndStatisticsArePyTorchs) {
  CheckGradients();
  scalars_ = std::make_unique<ScalarInputs>(*executor_, GetParam().dtype, golden_.batch);
  ASSERT_EQ(golden_.losses.size(), 10u);
  for (size_t update = 0; update < golden_.losses.size(); ++update) CheckLoss(update);
  CheckStatistics();
  for (const auto& [what, difference] : largest_) {
    std::ostringstream text;
    text << difference;
    RecordProperty(what, text.str());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Values(GoldenCase{"mlp", true, DType::kF64, 1e-6},
                                         GoldenCase{"cnn", true, DType::kF64, 1e-6},
                                         GoldenCase{"resnet18", true, DType::kF64, 1e-6},
                                         GoldenCase{"pointnet2", true, DType::kF64, 1e-6},
                                         GoldenCase{"mlp", false, DType::kF32, 2e-3},
                                         GoldenCase{"cnn", false, DType::kF32, 2e-3},
                                         GoldenCase{"resnet18", false, DType::kF32, 2e-3},
                                         GoldenCase{"pointnet2", false, DType::kF32, 2e-3}),
                         [](const testing::TestParamInfo<GoldenCase>& info) {
                           return std::string(info.param.file) +
                                  (info.param.reference ? "Reference" : "Cpu");
                         });

}  // namespace
}  // namespace ridge
