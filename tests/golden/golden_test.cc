// Gradients of every parameter and ten SGD losses against PyTorch in f64.
//
// Weights and inputs come from a counter formula that make_golden.py has too; that script made the
// JSON files beside this one.  The reference backend in f64 must agree to 1e-6 of the largest
// element; the CPU backend in f32 to 2e-3: f32 has 6e-8 per operation, and sums over thousands of
// terms, batch norm over few values and ten steps of training multiply it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/files.h"
#include "ridge/core/threads.h"
#include "ridge/graph/autodiff.h"
#include "ridge/models/model.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/job.h"
#include "ridge/train/scalar_inputs.h"

namespace ridge {
namespace {

using nlohmann::json;

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr int64_t kPositions = 256;

// FNV-1a, 64 bit.
uint64_t NameHash(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

// splitmix64 of a counter: in [0, 1).
double Uniform(uint64_t hash, int64_t i) {
  uint64_t x = hash + (static_cast<uint64_t>(i) + 1) * kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  x = x ^ (x >> 31);
  return static_cast<double>(x >> 11) * 0x1p-53;
}

double Weight(const std::string& name, uint64_t hash, const Dims& dims, int64_t i) {
  const double u = Uniform(hash, i);
  if (dims.size() == 1 && name.ends_with(".weight")) return 0.75 + 0.5 * u;
  const int64_t fan_in = dims.size() > 1 ? ElementCount(dims) / dims[0] : 16;
  return (2 * u - 1) / std::sqrt(static_cast<double>(fan_in));
}

struct GoldenCase {
  const char* file;
  const char* model;
  bool reference;  // else CPU
  DType dtype;
  double tolerance;
};

std::ostream& operator<<(std::ostream& out, const GoldenCase& c) {
  return out << c.file << (c.reference ? " reference " : " cpu ") << DTypeName(c.dtype);
}

class GoldenTest : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
#ifndef NDEBUG
    // 20 GFLOP in plain loops: 30 s when optimized, many minutes when not.
    if (GetParam().reference && GetParam().file == std::string("resnet18"))
      GTEST_SKIP() << "runs in release builds";
#endif
    const char* root = std::getenv("RIDGE_SOURCE_DIR");
    const std::string folder = root == nullptr ? "." : root;
    const std::string path = folder + "/tests/golden/" + GetParam().file + ".json";
    const Result<std::string> text = ReadFile(path);
    ASSERT_TRUE(text.ok()) << text.status().message();
    golden_ = json::parse(*text);
    Prepare();
  }

  void Prepare() {
    const Result<Graph> forward = BuildModel(
        GetParam().model, {.batch = golden_["batch"].get<int64_t>(), .dtype = GetParam().dtype});
    ASSERT_TRUE(forward.ok()) << forward.status().message();
    Result<std::vector<NamedGraph>> graphs =
        BuildTrainingGraphs(*forward, {.optimizer = {.name = "sgd", .weight_decay = {}}});
    ASSERT_TRUE(graphs.ok()) << graphs.status().message();
    graphs->push_back({"gradients", GradientGraph(*forward)});
    backend_ = MakeBackend();
    ASSERT_NE(backend_, nullptr);
    const Machine machine = {backend_.get(), Profile()};
    Result<Program> program = PlanGraphs(GetParam().model, std::move(*graphs), "", machine);
    ASSERT_TRUE(program.ok()) << program.status().message();
    Result<std::unique_ptr<Executor>> executor = Executor::Create(std::move(*program), *backend_);
    ASSERT_TRUE(executor.ok()) << executor.status().message();
    executor_ = std::move(*executor);
    executor_->InitializeVariables(/*seed=*/0);
    FillAll(*forward);
  }

  // The gradient of each parameter as an output under its name.
  static Graph GradientGraph(const Graph& forward) {
    GraphBuilder b(forward);
    std::vector<Value> params;
    for (ValueId id : forward.ValuesOfKind(ValueKind::kParameter)) params.push_back({id});
    const Result<std::vector<Value>> grads =
        AppendGradients(b, {forward.FindOutput("loss")}, params);
    EXPECT_TRUE(grads.ok()) << grads.status().message();
    b.graph().ClearOutputs();
    b.graph().ClearUpdates();  // the statistics belong to the training steps
    for (size_t i = 0; i < params.size() && grads.ok(); ++i)
      b.Output(forward.value(params[i].id).name, (*grads)[i]);
    const Result<Graph> graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? *graph : Graph();
  }

  std::unique_ptr<Backend> MakeBackend() {
    if (GetParam().reference) return MakeReferenceBackend();
    Result<std::unique_ptr<Backend>> cpu = MakeCpuBackend(AvailableThreads());
    return cpu.ok() ? std::move(*cpu) : nullptr;
  }

  static DeviceProfile Profile() {
    DeviceProfile profile;
    profile.peak_flops_per_s = {{"f32", 1e11}, {"f64", 1e10}};
    profile.memory = {{"DRAM", int64_t{1} << 40, 1e10}};
    return profile;
  }

  void FillAll(const Graph& forward) {
    for (const PersistentValue& value : executor_->program().persistent) {
      void* data = executor_->Persistent(value.name, value.slot);
      const uint64_t hash = NameHash(value.name);
      const int64_t count = value.type.elements();
      if (value.kind == ValueKind::kParameter) {
        for (int64_t i = 0; i < count; ++i)
          StoreFromDouble(value.type.dtype, data, i, Weight(value.name, hash, value.type.dims, i));
      } else if (value.kind == ValueKind::kInput && value.name == "image") {
        for (int64_t i = 0; i < count; ++i)
          StoreFromDouble(value.type.dtype, data, i, Uniform(hash, i));
      } else if (value.kind == ValueKind::kInput && value.name == "label") {
        const auto classes = forward.type(forward.FindOutput("logits")).dims[1];
        for (int64_t i = 0; i < count; ++i)
          StoreFromDouble(value.type.dtype, data, i,
                          std::floor(Uniform(hash, i) * static_cast<double>(classes)));
      }
    }
  }

  void Compare(const std::string& what, const json& golden, const TensorType& type,
               const void* data) {
    const double scale = std::max(golden["max"].get<double>(), 1e-300);
    const double tolerance = GetParam().tolerance;
    const int64_t count = type.elements();
    double squares = 0, sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = LoadAsDouble(type.dtype, data, i);
      squares += x * x;
      sum += x;
    }
    const double norm = golden["norm"].get<double>();
    EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm) << what;
    // A sum may cancel; its error grows with the number of terms like their norm.
    const double terms = std::sqrt(static_cast<double>(count));
    EXPECT_NEAR(sum, golden["sum"].get<double>(), tolerance * terms * norm) << what;
    const json& values = golden["values"];
    ASSERT_EQ(values.size(), static_cast<size_t>(std::min(count, kPositions))) << what;
    for (size_t k = 0; k < values.size(); ++k) {
      const int64_t at = count <= kPositions ? static_cast<int64_t>(k)
                                             : static_cast<int64_t>(k) * count / kPositions;
      EXPECT_NEAR(LoadAsDouble(type.dtype, data, at), values[k].get<double>(), tolerance * scale)
          << what << " at " << at;
    }
  }

  json golden_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executor> executor_;
};

TEST_P(GoldenTest, GradientsLossesAndStatisticsArePyTorchs) {
  const int gradients = executor_->StepIndex("gradients");
  ASSERT_TRUE(executor_->Run(gradients, /*slot=*/0).ok());
  for (const auto& [name, golden] : golden_["gradients"].items()) {
    ASSERT_NE(executor_->Output(gradients, name), nullptr) << name;
    Compare("gradient of " + name, golden, executor_->OutputType(gradients, name),
            executor_->Output(gradients, name));
  }
  const int train = executor_->StepIndex("train");
  ScalarInputs scalars(*executor_, GetParam().dtype);
  for (size_t step = 0; step < golden_["losses"].size(); ++step) {
    scalars.Write(/*slot=*/0, golden_["lr"].get<double>(), static_cast<int64_t>(step), {});
    ASSERT_TRUE(executor_->Run(train, /*slot=*/0).ok());
    const double loss = LoadAsDouble(GetParam().dtype, executor_->Output(train, "loss"), 0);
    const double golden = golden_["losses"][step].get<double>();
    EXPECT_NEAR(loss, golden, GetParam().tolerance * std::max(1.0, golden)) << "step " << step;
  }
  for (const auto& [name, golden] : golden_["statistics"].items()) {
    ASSERT_NE(executor_->Persistent(name), nullptr) << name;
    Compare(name, golden, executor_->FindPersistent(name)->type, executor_->Persistent(name));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Values(GoldenCase{"mlp", "mlp", true, DType::kF64, 1e-6},
                                         GoldenCase{"cnn", "cnn", true, DType::kF64, 1e-6},
                                         GoldenCase{"resnet18", "resnet18:image=32,classes=10",
                                                    true, DType::kF64, 1e-6},
                                         GoldenCase{"mlp", "mlp", false, DType::kF32, 2e-3},
                                         GoldenCase{"cnn", "cnn", false, DType::kF32, 2e-3},
                                         GoldenCase{"resnet18", "resnet18:image=32,classes=10",
                                                    false, DType::kF32, 2e-3}),
                         [](const testing::TestParamInfo<GoldenCase>& info) {
                           return std::string(info.param.file) +
                                  (info.param.reference ? "Reference" : "Cpu");
                         });

}  // namespace
}  // namespace ridge
