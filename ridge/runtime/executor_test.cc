#include "ridge/runtime/executor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/forwarding_backend.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/tensor_file.h"
#include "ridge/core/test_folder.h"
#include "ridge/core/threads.h"
#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/planner.h"
#include "ridge/runtime/rehearsal.h"

namespace ridge {
namespace {

constexpr int64_t kBatch = 6;

// One SGD step of a two-layer network, optimizer inside.
Graph TrainingGraph() {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kF32, {kBatch, 5}}, {"batch", ""});
  const Value t = b.Input("t", {DType::kF32, {kBatch, 3}});
  const Value lr = b.Input("lr", {DType::kF32, {}});
  const Value y = b.Linear(Relu(b.Linear(x, 7, "fc1")), 3, "fc2");
  const Value error = y - t;
  const Value loss = Mean(error * error);
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

DeviceProfile TestProfile() {
  DeviceProfile profile;
  profile.name = "test";
  profile.peak_flops_per_s = {{"f32", 1e9}};
  profile.memory = {{"DRAM", int64_t{1} << 40, 1e9}};
  profile.launch_s = 1e-6;
  return profile;
}

std::unique_ptr<Executor> MakeExecutor(const Graph& graph, Backend& backend,
                                       const PlanOptions& options = {}) {
  auto program = PlanProgram("net", {{"train", graph}}, backend, Roofline(TestProfile()), options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  auto executor = Executor::Create(*program, backend);
  EXPECT_TRUE(executor.ok()) << executor.status().message();
  return std::move(*executor);
}

void Fill(Executor& executor, const std::string& name, double start, int slot = 0) {
  const PersistentValue* value = executor.FindPersistent(name);
  for (int64_t i = 0; i < value->type.elements(); ++i)
    StoreFromDouble(value->type.dtype, executor.transfers().Input(name, slot), i,
                    std::sin(start + static_cast<double>(i)));
}

Tensor Copy(const TensorType& type, const void* data) {
  Tensor tensor(type);
  std::memcpy(tensor.mutable_data(), data, static_cast<size_t>(type.bytes()));
  return tensor;
}

class ExecutorTest : public ::testing::TestWithParam<bool> {};

TEST_P(ExecutorTest, StepsAreThoseOfTheInterpreterBitForBit) {
  const Graph graph = TrainingGraph();
  const auto backend = MakeReferenceBackend();
  PlanOptions options;
  options.in_place = GetParam();
  const auto executor = MakeExecutor(graph, *backend, options);
  EXPECT_TRUE(executor->transfers().Initialize(3).ok());
  std::map<std::string, Tensor> given;
  for (int step = 0; step < 4; ++step) {
    const int slot = step % 2;
    Fill(*executor, "x", step, slot);
    Fill(*executor, "t", 2.5 * step, slot);
    StoreFromDouble(DType::kF32, executor->transfers().Input("lr", slot), 0, 0.1);
    for (const char* name : {"x", "t", "lr"})
      given[name] =
          Copy(executor->FindPersistent(name)->type, executor->transfers().Input(name, slot));
    ASSERT_TRUE(executor->Run(0, slot).ok());
    const auto values = EvaluateGraph(graph, given, /*seed=*/3);
    ASSERT_TRUE(values.ok());
    const Tensor loss =
        Copy(executor->OutputType(0, "loss"), *executor->transfers().Output(0, "loss"));
    EXPECT_TRUE(loss.same_bits((*values)[static_cast<size_t>(graph.FindOutput("loss"))]));
    for (const GraphUpdate& update : graph.updates()) {
      const std::string& name = graph.value(update.variable).name;
      given[name] = (*values)[static_cast<size_t>(update.value)];
      EXPECT_EQ(std::memcmp(*executor->transfers().Read(name), given[name].data(),
                            static_cast<size_t>(given[name].bytes())),
                0)
          << name << " after step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InPlaceOnAndOff, ExecutorTest, ::testing::Bool());

// With seed 3.
Tensor StartOf(const std::string& name, const TensorType& type, const Init& init) {
  ValueInfo info;
  info.name = name;
  info.type = type;
  info.init = init;
  return *InitialValue(info, 3);
}

// Larger than what one thread fills at a time, and with ends that fit no block of draws.
TEST(Executor, StartingValuesDoNotDependOnThreads) {
  GraphBuilder b("start");
  const TensorType type{DType::kF32, {300, 501}};
  const Tensor given = StartOf("x", type, Init::Normal(1));
  b.Parameter("normal", type, Init::Normal(0.02));
  b.Parameter("uniform", {DType::kBF16, {200'001}}, Init::Uniform(0.5));
  b.Parameter("ones", {DType::kF64, {70'003}}, Init::Constant(1));
  b.Parameter("given", type, Init::FromTensor(given));
  b.Output("loss", Mean(b.Input("in", {DType::kF32, {4}})));
  const auto graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto backend = MakeCpuBackend(std::min(3, AvailableThreads()));
  ASSERT_TRUE(backend.ok());
  const auto executor = MakeExecutor(*graph, **backend);
  executor->TouchArena();
  EXPECT_EQ(executor->arena().resident_bytes(), executor->arena().bytes());
  EXPECT_TRUE(executor->transfers().Initialize(3).ok());
  for (const PersistentValue& value : executor->program().persistent) {
    if (value.kind != ValueKind::kParameter) continue;
    const Tensor start = StartOf(value.name, value.type, value.init);
    EXPECT_TRUE(start.same_bits(Copy(value.type, *executor->transfers().Read(value.name))))
        << value.name;
  }
}

// More pieces than there are threads.
TEST(Executor, StartingValuesComeFromAFileWithTheSameBits) {
  const TempFolder folder;
  const TensorType type{DType::kF32, {3000, 501}};
  const Tensor given = StartOf("x", type, Init::Normal(1));
  const std::string path =
      folder.Write("w", std::string(given.as<char>(), static_cast<size_t>(given.bytes())));
  const auto file = TensorFile::Adopt(OwnedFd(::open(path.c_str(), O_RDONLY)), "the weights",
                                      ErrorCode::kInvalidModel);
  ASSERT_TRUE(file.ok()) << file.status().message();
  GraphBuilder b("start");
  const Value w = b.Parameter("w", type, Init::FromTensor(TensorInFile(type, *file, 0)));
  b.Output("loss", Mean(b.Input("in", {DType::kF32, {4}})) + Mean(w));
  const auto graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto backend = MakeCpuBackend(std::min(2, AvailableThreads()));
  ASSERT_TRUE(backend.ok());
  const auto executor = MakeExecutor(*graph, **backend);
  const Status status = executor->transfers().Initialize(3);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(given.same_bits(Copy(type, *executor->transfers().Read("w"))));

  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(executor->transfers().Initialize(3).message(),
            "the weights: has changed: it has 100 bytes, and had 6012000 when it was opened. hint: "
            "start again, and leave the file as it is until the first step has run");
}

// Layers whose weights the CPU's kernels want packed, the products with AVX-512, the convolution
// with any instructions; columns and filters that fill no block; SGD with momentum.
Graph WideGraph() {
  GraphBuilder b("wide");
  const Value x = b.Input("x", {DType::kF32, {256, 130}});
  const Value lr = b.Input("lr", {DType::kF32, {}});
  const Value y = b.Linear(Relu(b.Linear(x, 200, "fc1")), 150, "fc2");
  const Value picture = b.Input("picture", {DType::kF32, {4, 16, 20, 20}});
  const Value filters = b.Parameter("conv", {DType::kF32, {30, 16, 3, 3}}, Init::Uniform(0.1));
  const Value c = Op("conv", {picture, filters}, {{"padding", {1, 1, 1, 1}}});
  const Value loss = Mean(y * y) + Mean(c * c);
  b.Output("loss", loss);
  std::vector<Value> params;
  for (ValueId id : b.graph().ValuesOfKind(ValueKind::kParameter)) params.push_back(b.At(id));
  const auto grads = AppendGradients(b, loss, params);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = b.graph().value(params[i].id).name;
    const Value sum =
        b.State(name + ".sum", params[i].type(), Init::Zeros(), ValueRole::kOptimizer);
    const auto updated = OpOutputs("sgd_update", {params[i], (*grads)[i], lr, sum},
                                   {{"momentum", 0.9}}, name + ".new");
    b.Update(params[i], updated[0]);
    b.Update(sum, updated[1]);
  }
  auto graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *graph;
}

std::map<std::string, Tensor> Variables(Executor& executor) {
  std::map<std::string, Tensor> values;
  const std::vector<PersistentValue>& persistent = executor.program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    if (persistent[i].kind == ValueKind::kInput) continue;
    values[persistent[i].name] = Copy(persistent[i].type, *executor.transfers().Read(i));
  }
  return values;
}

void RunWide(Executor& executor, int64_t steps) {
  Fill(executor, "x", 1);
  Fill(executor, "picture", 1);
  StoreFromDouble(DType::kF32, executor.transfers().Input("lr"), 0, 1.0);
  for (int64_t step = 0; step < steps; ++step) {
    ASSERT_TRUE(executor.Run(0, 0).ok());
  }
}

TEST(Executor, PackedVariablesAreRowMajorFromOutside) {
  const Graph graph = WideGraph();
  const auto backend = MakeCpuBackend(std::min(2, AvailableThreads()));
  ASSERT_TRUE(backend.ok());
  const auto executor = MakeExecutor(graph, **backend);
  EXPECT_TRUE(executor->transfers().Initialize(3).ok());
  int packed = 0;
  for (const PersistentValue& value : executor->program().persistent)
    packed += value.layout != kRowMajor ? 1 : 0;
  EXPECT_GT(packed, 0);
  const std::map<std::string, Tensor> start = Variables(*executor);
  for (const PersistentValue& value : executor->program().persistent) {
    if (value.kind == ValueKind::kInput) continue;
    EXPECT_TRUE(StartOf(value.name, value.type, value.init).same_bits(start.at(value.name)));
  }
  const std::vector<PersistentValue>& persistent = executor->program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    if (persistent[i].kind == ValueKind::kInput) continue;
    const Tensor& tensor = start.at(persistent[i].name);
    EXPECT_TRUE(executor->transfers().Write(i, tensor.data()).ok());
  }
  for (const auto& [name, tensor] : Variables(*executor))
    EXPECT_TRUE(tensor.same_bits(start.at(name))) << name;
}

// Counts the kernels that are made.
class CountingBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  int made = 0;

  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    ++made;
    return inner_.Create(op, call, choice);
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    ++made;
    return inner_.CreateReorder(type, choice);
  }
};

// The bytes of kernels' code are measured before the first step.
TEST(Executor, EveryKernelIsMadeBeforeTheFirstStep) {
  const auto cpu = MakeCpuBackend(std::min(2, AvailableThreads()));
  ASSERT_TRUE(cpu.ok());
  CountingBackend backend(**cpu);
  const auto executor = MakeExecutor(WideGraph(), backend);
  const int made = backend.made;
  EXPECT_TRUE(executor->transfers().Initialize(3).ok());
  RunWide(*executor, 1);
  const std::vector<PersistentValue>& persistent = executor->program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    if (persistent[i].kind == ValueKind::kInput) continue;
    EXPECT_TRUE(executor->transfers().Read(i).ok());
    EXPECT_TRUE(executor->transfers().Commit(i).ok());
  }
  EXPECT_EQ(backend.made, made);
}

TEST(Executor, PackedVariablesLearnWhatRowMajorOnesLearn) {
  const Graph graph = WideGraph();
  const auto cpu = MakeCpuBackend(std::min(2, AvailableThreads()));
  ASSERT_TRUE(cpu.ok());
  const auto reference = MakeReferenceBackend();
  const auto have = MakeExecutor(graph, **cpu), want = MakeExecutor(graph, *reference);
  for (Executor* executor : {have.get(), want.get()}) {
    EXPECT_TRUE(executor->transfers().Initialize(3).ok());
    RunWide(*executor, 3);
  }
  const std::map<std::string, Tensor> learned = Variables(*have);
  for (const auto& [name, tensor] : Variables(*want)) {
    double difference = 0;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      difference = std::max(difference, std::abs(tensor.at(i) - learned.at(name).at(i)));
    EXPECT_LT(difference, 1e-5) << name;  // of 0.1
  }
}

TEST(Executor, StopsAtANonFiniteLossBeforeAnyParameterChanges) {
  const auto backend = MakeReferenceBackend();
  const auto executor = MakeExecutor(TrainingGraph(), *backend);
  EXPECT_TRUE(executor->transfers().Initialize(0).ok());
  Fill(*executor, "x", 1);
  Fill(*executor, "t", 1);
  StoreFromDouble(DType::kF32, executor->transfers().Input("t"), 4,
                  std::numeric_limits<double>::infinity());
  const TensorType type = executor->FindPersistent("fc1.weight")->type;
  const Tensor before = Copy(type, *executor->transfers().Read("fc1.weight"));
  const Status status = executor->Run(0, 0);
  EXPECT_EQ(status.code(), ErrorCode::kFailed);
  EXPECT_EQ(status.message(), "loss is inf");
  EXPECT_TRUE(before.same_bits(Copy(type, *executor->transfers().Read("fc1.weight"))));
  EXPECT_EQ(*executor->FirstNonFinite(0, 0), "input 't'");
}

TEST(Executor, NamesTheFirstNonFiniteNode) {  // 3e38 squared is beyond f32
  const auto backend = MakeReferenceBackend();
  const auto executor = MakeExecutor(TrainingGraph(), *backend);
  EXPECT_TRUE(executor->transfers().Initialize(0).ok());
  for (int64_t i = 0; i < kBatch * 5; ++i)
    StoreFromDouble(DType::kF32, executor->transfers().Input("x"), i, 3e38);
  EXPECT_FALSE(executor->Run(0, 0).ok());
  EXPECT_EQ(*executor->FirstNonFinite(0, 0), "node 'mul' (mul)");
}

// Channels 16 to 19 lie in a block of their own behind all others, with lanes of padding between
// their elements.
TEST(Executor, NamesTheFirstNonFiniteNodeInABlockedLayout) {
  GraphBuilder b("net");
  constexpr int64_t kPixels = 16 * 16;
  const Value x = b.Input("x", {DType::kF32, {1, 64, 16, 16}});
  Tensor weight({DType::kF32, {20, 64, 3, 3}});
  for (int64_t i = 0; i < weight.elements(); ++i)
    StoreFromDouble(DType::kF32, weight.mutable_data(), i, i < 16 * 64 * 9 ? 0 : 1);
  const Value w = b.Parameter("w", weight.type(), Init::FromTensor(weight));
  const Value c = Op("conv", {x, w}, {{"padding", {1, 1, 1, 1}}}, "c");
  b.Output("loss", Mean(Op("exp", {c}, {}, "e")));
  const auto backend = MakeCpuBackend(1);
  ASSERT_TRUE(backend.ok());
  const auto executor = MakeExecutor(*b.Build(), **backend);
  const auto& values = executor->program().steps[0].values;
  if (std::none_of(values.begin(), values.end(), [](const PlannedValue& value) {
        return value.name == "e" && value.size_bytes > value.type.bytes();
      }))
    GTEST_SKIP() << "not on this machine: no layout with padding";
  EXPECT_TRUE(executor->transfers().Initialize(0).ok());
  auto* pixels = static_cast<float*>(executor->transfers().Input("x"));
  std::fill(pixels, pixels + 64 * kPixels, 0.0F);
  pixels[kPixels - 1] = 100;
  EXPECT_FALSE(executor->Run(0, 0).ok());
  EXPECT_EQ(*executor->FirstNonFinite(0, 0), "node 'e' (exp)");
}

// Two slices; `a` goes into the sum, and `y` may be written over `a`.
TEST(Executor, WhatIsWrittenOverAnAddendStaysOutOfTheSumOverSlices) {
  GraphBuilder b("net");
  const TensorType type{DType::kF32, {4}};
  const Value x = b.Input("x", type, {"batch"});
  const Value s = b.State("s", type, Init::Zeros(), ValueRole::kNone);
  const Value a = Op("exp", {x}, {}, "a");
  b.Update(s, Op("add", {s, a}, {}, "next"));
  b.Output("y", Op("neg", {a}, {}, "y"));
  NamedGraph named{"train", *b.Build()};
  named.slices = 2;
  named.sliced_inputs = {"x"};
  named.accumulators = {"s"};
  const auto backend = MakeCpuBackend(1);
  ASSERT_TRUE(backend.ok());
  auto program = PlanProgram("net", {named}, **backend, Roofline(TestProfile()), {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto executor = Executor::Create(*program, **backend);
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  EXPECT_TRUE((*executor)->transfers().Initialize(0).ok());
  Fill(**executor, "x", 1);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE((*executor)->Run(0, 0).ok());
    for (int64_t i = 0; i < 4; ++i) {
      const auto part = [&](int64_t slice) {
        return std::exp(
            static_cast<const float*>((*executor)->transfers().Input("x"))[slice * 4 + i]);
      };
      EXPECT_NEAR(static_cast<const float*>(*(*executor)->transfers().Read("s"))[i],
                  part(0) + part(1), 1e-5);
      EXPECT_NEAR(static_cast<const float*>(*(*executor)->transfers().Output(0, "y"))[i], -part(1),
                  1e-5);
    }
  }
}

TEST(Executor, SwappedVariablesKeepBothOldValues) {
  GraphBuilder b("swap");
  const Value a = b.State("a", {DType::kF32, {2}}, Init::Constant(1), ValueRole::kNone);
  const Value c = b.State("c", {DType::kF32, {2}}, Init::Constant(2), ValueRole::kNone);
  b.Output("old_a", a);
  b.Update(a, c);
  b.Update(c, a);
  const auto backend = MakeReferenceBackend();
  const auto executor = MakeExecutor(*b.Build(), *backend);
  EXPECT_TRUE(executor->transfers().Initialize(0).ok());
  ASSERT_TRUE(executor->Run(0, 0).ok());
  EXPECT_EQ(static_cast<const float*>(*executor->transfers().Read("a"))[1], 2);
  EXPECT_EQ(static_cast<const float*>(*executor->transfers().Read("c"))[1], 1);
  EXPECT_EQ(static_cast<const float*>(*executor->transfers().Output(0, "old_a"))[0], 1);
}

TEST(Executor, ArenaPagesBecomeResidentOnlyWhereThePlanPlaces) {
  const auto backend = MakeReferenceBackend();
  const auto executor = MakeExecutor(TrainingGraph(), *backend);
  EXPECT_EQ(executor->arena().resident_bytes(), 0);
  EXPECT_TRUE(executor->transfers().Initialize(0).ok());
  ASSERT_TRUE(executor->Run(0, 0).ok());
  EXPECT_GT(executor->arena().resident_bytes(), 0);
  EXPECT_LE(executor->arena().resident_bytes(), executor->arena().bytes());
}

TEST(Rehearsal, MeasuresEveryKernelThatFitsTheBudget) {
  const auto backend = MakeReferenceBackend();
  const auto executor = MakeExecutor(TrainingGraph(), *backend);
  const auto seconds = Rehearse(*executor, backend->nominal(), 0.5);
  ASSERT_TRUE(seconds.ok());
  for (const PlannedNode& node : executor->program().steps[0].nodes) {
    ASSERT_TRUE(seconds->contains(node.choice.key)) << node.choice.key;
    EXPECT_GT(seconds->at(node.choice.key), 0);
  }
  DeviceProfile profile = TestProfile();
  profile.kernel_s = *seconds;
  EstimateTimes(Roofline(profile), executor->mutable_program());
  EXPECT_TRUE(executor->program().steps[0].nodes[0].measured_s);
}

}  // namespace
}  // namespace ridge
