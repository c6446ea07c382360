// Trainings on the fake device: the bits of the same kernels on the host, whatever the delays, and
// errors that end a run as they should.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/instructions.h"
#include "ridge/core/test_folder.h"
#include "ridge/dist/test_ranks.h"
#include "ridge/models/model.h"
#include "ridge/runtime/kernel_timer.h"
#include "ridge/train/loop/test_support.h"
#include "ridge/train/loop/trainer.h"
#include "tests/crossing/hostile_backend.h"
#include "tests/crossing/net.h"
#include "tests/crossing/settings.h"
#include "tests/crossing/training.h"
#include "tests/fake_device/fake_device.h"

namespace ridge::fake {
namespace {

// A fake device with the kernels of `inner`.
struct FakeMachine {
  FakeMachine(Backend& inner, const FakeOptions& options)
      : device(options), backend(MakeFakeBackend(inner, device)) {
    machine.backend = backend.get();
    machine.profile = NominalProfile(1, UsedInstructions());
    machine.profile.id = "test";
  }
  FakeDevice device;
  std::unique_ptr<Backend> backend;
  Machine machine;
};

Machine HostMachine(Backend& backend) {
  Machine machine;
  machine.backend = &backend;
  machine.profile = NominalProfile(1, UsedInstructions());
  machine.profile.id = "test";
  return machine;
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a run leaves that must not depend on the device.
struct Left {
  std::vector<double> losses;
  std::string parameters, state, hash;
  std::map<std::string, double> evaluated;
};

constexpr int64_t kSteps = 3;

TrainOptions Options(const std::string& model) {
  TrainOptions options;
  options.model = model;
  options.data = "synthetic";
  options.batch = 2;
  options.steps = kSteps;
  options.slices = "1";
  options.recompute = "off";
  return options;
}

void ReadRun(const TrainOutcome& outcome, Left& left) {
  const std::string folder =
      outcome.folder + "/checkpoints/step-" + std::to_string(outcome.step) + "/";
  left.parameters = Bytes(folder + "parameters.safetensors");
  left.state = Bytes(folder + "state.safetensors");
  left.hash = outcome.summary.parameters_sha256;
}

Result<Left> TrainOn(const Machine& machine, TrainRequest request) {
  const TempFolder folder;
  request.options.out = folder.File("run");
  Recorder recorder;
  RIDGE_ASSIGN_OR_RETURN(const TrainOutcome outcome, Train(request, machine, recorder));
  if (outcome.end == RunEnd::kCheckpointFailed) return Status(ErrorCode::kDevice, outcome.message);
  Left left;
  left.losses = recorder.losses;
  for (const EvaluationReport& report : recorder.evaluations)
    left.evaluated[std::to_string(report.step)] = report.result.loss;
  ReadRun(outcome, left);
  return left;
}

void ExpectSame(const Result<Left>& want, const Result<Left>& have) {
  ASSERT_TRUE(want.ok()) << want.status().message();
  ASSERT_TRUE(have.ok()) << have.status().message();
  EXPECT_EQ(want->losses, have->losses);
  EXPECT_EQ(want->evaluated, have->evaluated);
  EXPECT_EQ(want->hash, have->hash);
  EXPECT_TRUE(want->parameters == have->parameters);
  EXPECT_TRUE(want->state == have->state);
}

// --- the built-in models -------------------------------------------------------------------------

struct ModelCase {
  const char* spec;
  bool large;  // minutes in a debug build
};

// gtest prints it.
void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.spec; }

constexpr ModelCase kModels[] = {
    {"mlp:hidden=8,layers=1,inputs=12,classes=3", false},
    {"cnn:filters=4,image=8,classes=3", false},
    {"lstm:vocab=20,tokens=3,hidden=8", false},
    {"gpt:vocab=20,context=4,hidden=8,layers=1,heads=2", false},
    {"bert:vocab=20,tokens=4,hidden=8,layers=1,heads=2", false},
    {"llama:vocab=20,context=4,hidden=8,layers=1,heads=2,kv_heads=1,inner=12", false},
    {"whisper_tiny:vocab=20,mels=4,frames=6,context=4,hidden=8,layers=1,heads=2", false},
    {"sam_vit_b:image=48,hidden=8,layers=2,heads=2,global=2,window=2,classes=3", true},
    {"resnet50_bert:image=8,vocab=20,tokens=4,hidden=8,layers=1,heads=2", true},
    {"yolov8n:image=64,classes=3,boxes=4", true},
    {"pointnet2:points=16,centers=8,neighbours=2,classes=3", true},
    {"conformer_s:mels=4,frames=9,letters=2,classes=4,hidden=8,layers=1,heads=2,kernel=3", true},
    {"unet:image=16,base=2", false},
    {"vit_ti:image=16,classes=3", true},
    {"mobilenet_v3_small:image=32,classes=3", true},
    {"convnext_tiny:image=32,classes=3", true},
    {"efficientnet_v2_s:image=32,classes=3", true},
    {"resnet18:image=8,classes=3", true},
    {"resnet50:image=8,classes=3", true},
};

class FakeTrainingTest : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
#ifndef NDEBUG
    if (GetParam().large) GTEST_SKIP() << "runs in release builds";
#endif
  }
  static TrainRequest Request() {
    TrainRequest request;
    request.options = Options(GetParam().spec);
    if (GetParam().large) request.options.steps = 1;
    request.rehearse_s = 0;
    return request;
  }
};

TEST_P(FakeTrainingTest, LeavesTheBitsOfTheReferenceKernelsOnTheHost) {
  const std::unique_ptr<Backend> inner = MakeReferenceBackend();
  FakeMachine fake(*inner, {.seed = 3});
  fake.machine.inter_op = {.streams = 2, .always = true};
  const Result<Left> have = TrainOn(fake.machine, Request());
  ExpectSame(TrainOn(HostMachine(*inner), Request()), have);
  EXPECT_GT(fake.device.kernels(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, FakeTrainingTest, testing::ValuesIn(kModels),
                         [](const auto& info) {
                           const std::string spec = info.param.spec;
                           return spec.substr(0, spec.find(':'));
                         });

TEST(FakeTraining, EveryBuiltInModelIsTrained) {
  for (const BuiltinModel& model : BuiltinModels()) {
    const bool trained = std::any_of(std::begin(kModels), std::end(kModels), [&](const auto& c) {
      return std::string(c.spec).starts_with(model.name + ":");
    });
    EXPECT_TRUE(trained) << model.name;
  }
}

// --- parameters on the host ---------------------------------------------------------------------

// Some kernels run on the host then, which are those of the device; all else is copies.
TEST(FakeTraining, PlacedParametersLeaveTheBitsOfTheDevice) {
  TrainRequest request;
  request.rehearse_s = 0;
  for (const char* model :
       {"gpt:vocab=20,context=4,hidden=8,layers=1,heads=2", "cnn:filters=4,image=8,classes=3",
        "gpt:vocab=20,context=4,hidden=8,layers=1,heads=2,tied=1"}) {
    request.options = Options(model);
    const std::unique_ptr<Backend> inner = MakeReferenceBackend();
    for (const char* place : {"*.weight=cpu", "*=cpu", "tok.*=cpu,blocks.0.*=cpu"}) {
      request.options.place = {place};
      if (std::string(model).starts_with("cnn") && std::string(place).starts_with("tok")) continue;
      for (const char* slices : {"1", "2"}) {
        const bool more = slices[0] == '2';
        request.options.slices = slices;
        request.options.clip_norm = more ? 1 : 0;
        request.options.accumulate = more ? 2 : 1;
        request.options.ema = more ? 0.9 : 0;
        FakeMachine fake(*inner, {.seed = 5});
        fake.backend->SetHost(*inner);
        TrainRequest plain = request;
        plain.options.place.clear();
        const Result<Left> base = TrainOn(HostMachine(*inner), plain);
        const Result<Left> have = TrainOn(fake.machine, request);
        ExpectSame(base, have);
      }
    }
  }
}

// --- ranks, each with a device -------------------------------------------------------------------

// Exchanges cross the host's memory; sums and statistics of the batch are added on the devices.
TEST(FakeTraining, RanksWithADeviceEachLeaveTheBitsOfOneProcess) {
  const TempFolder models;
  TrainRequest request;
  request.options = Options(models.Write("net.ridge", kNormNet));
  request.options.batch = 12;
  request.options.slices = "4";
  request.options.sums = "tree";
  request.options.clip_norm = 1;
  request.rehearse_s = 0;
  const std::unique_ptr<Backend> inner = MakeReferenceBackend();
  const Result<Left> want = TrainOn(HostMachine(*inner), request);
  for (const int ranks : {1, 2, 3, 4}) {
    const TempFolder folder;
    request.options.out = folder.File("run");
    std::vector<std::string> hashes(static_cast<size_t>(ranks));
    RunRanks(ranks, [&](Communicator& communicator) {
      const std::unique_ptr<Backend> kernels = MakeReferenceBackend();
      FakeMachine fake(*kernels,
                       {.seed = static_cast<uint64_t>(communicator.rank()), .most_delay_us = 20});
      fake.machine.Join(communicator);
      Recorder recorder;
      const Result<TrainOutcome> outcome = Train(request, fake.machine, recorder);
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      hashes[static_cast<size_t>(communicator.rank())] = outcome->summary.parameters_sha256;
    });
    for (const std::string& hash : hashes) EXPECT_EQ(hash, want->hash) << ranks << " ranks";
  }
}

// --- slices, sections, layouts, recomputation ----------------------------------------------------

// Kernels in layouts of their own, weights that stay packed, sums of slices, in place, recomputed,
// on two streams: the interpreter's numbers.
TEST(FakeTraining, RandomTrainingsInAllSettingsAreTheInterpreters) {
  const std::unique_ptr<Backend> hostile = crossing::MakeHostileBackend();
  crossing::Uses uses;
  int64_t compared = 0, waits = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const crossing::Net net = crossing::DrawNet(seed);
    for (crossing::Setting setting : crossing::DrawSettings(seed, 4)) {
      FakeMachine fake(*hostile, {.seed = seed, .most_delay_us = 5});
      const auto training = BuildTraining(TextOf(net), setting, fake.machine);
      if (!training.ok()) continue;  // the product refuses it
      const auto want = Interpret(*training);
      ASSERT_TRUE(want.ok()) << want.status().message();
      if (!crossing::IsTame(*want)) continue;
      const auto have = Execute(*training, setting, fake.machine, uses);
      ASSERT_TRUE(have.ok()) << have.status().message() << "\nseed " << seed << " "
                             << TextOf(setting);
      EXPECT_EQ(crossing::Difference(*want, *have, 0), "")
          << "seed " << seed << " " << TextOf(setting);
      ++compared;
      waits += fake.device.waits();
    }
  }
  EXPECT_GT(compared, 20);
  EXPECT_GT(waits, 0);
  EXPECT_EQ(uses.Missing(), "");
}

// Two towers, so that a step has sections.
constexpr char kTowers[] = R"(graph towers
  x = input f32[batch,6]
  label = input i64[batch]
  wa = parameter f32[6,5] init=uniform(0.3)
  wb = parameter f32[6,5] init=uniform(0.3)
  xa = matmul(x, wa)
  a = tanh(xa)
  xb = matmul(x, wb)
  b = sigmoid(xb)
  logits = add(a, b)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output logits
  output loss
)";

struct Towers {
  TempFolder folder;
  TrainRequest request;
  Towers() {
    request.options = Options(folder.Write("towers.ridge", kTowers));
    request.options.steps = 1;
    request.rehearse_s = 0;
  }
};

TEST(FakeTraining, EveryWaitOfAStepIsNeeded) {
  const Towers towers;
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  int64_t waits = 0;
  {
    FakeMachine fake(*reference, {});
    fake.machine.inter_op = {.streams = 2, .always = true};
    const Result<Left> run = TrainOn(fake.machine, towers.request);
    ASSERT_TRUE(run.ok()) << run.status().message();
    waits = fake.device.waits();
  }
  ASSERT_GT(waits, 1);
  for (int64_t wait = 0; wait < waits; ++wait) {
    FakeMachine fake(*reference, {.drop_wait = wait});
    fake.machine.inter_op = {.streams = 2, .always = true};
    const Result<Left> run = TrainOn(fake.machine, towers.request);
    EXPECT_EQ(run.status().code(), ErrorCode::kDevice) << "wait " << wait;
    EXPECT_TRUE(run.status().message().ends_with("and no event orders them"))
        << run.status().message();
  }
}

// --- whole runs ----------------------------------------------------------------------------------

TrainRequest WholeRun() {
  TrainRequest request;
  request.options = Options(kModels[1].spec);
  request.options.steps = 6;
  request.options.validation = "0.002";  // 8 samples
  request.options.eval_every = 2;
  request.options.checkpoint_every = 2;
  request.options.optimizer.name = "adam";
  request.options.accumulate = 2;
  request.rehearse_s = 0;
  return request;
}

TEST(FakeTraining, EvaluationsAndCheckpointsAreTheHosts) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeMachine fake(*reference, {.seed = 5});
  const Result<Left> have = TrainOn(fake.machine, WholeRun());
  ExpectSame(TrainOn(HostMachine(*reference), WholeRun()), have);
  EXPECT_EQ(have->evaluated.size(), 3u);
}

TEST(FakeTraining, RehearsedRunsLeaveTheSameBits) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeMachine fake(*reference, {.seed = 7, .most_delay_us = 0});
  TrainRequest rehearsed = WholeRun();
  rehearsed.rehearse_s = 0.01;
  ExpectSame(TrainOn(HostMachine(*reference), WholeRun()), TrainOn(fake.machine, rehearsed));
}

TEST(FakeTraining, AStoppedRunGoesOnOnAnotherDeviceWithTheSameBits) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const Result<Left> want = TrainOn(HostMachine(*reference), WholeRun());
  const TempFolder folder;
  TrainRequest request = WholeRun();
  request.options.out = folder.File("run");
  request.preempt_after_step = 3;
  Recorder recorder;
  {
    FakeMachine fake(*reference, {.seed = 1});
    const auto stopped = Train(request, fake.machine, recorder);
    ASSERT_TRUE(stopped.ok()) << stopped.status().message();
    EXPECT_EQ(stopped->end, RunEnd::kPreempted);
  }
  FakeMachine other(*reference, {.seed = 2});
  request.preempt_after_step = -1;
  request.resume = true;
  const auto outcome = Train(request, other.machine, recorder);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  Left have;
  ReadRun(*outcome, have);
  ASSERT_TRUE(want.ok());
  EXPECT_EQ(have.hash, want->hash);
  EXPECT_TRUE(have.parameters == want->parameters);
  EXPECT_TRUE(have.state == want->state);
}

TEST(FakeTraining, TheFirstNonFiniteValueIsNamedAsOnTheHost) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeMachine fake(*reference, {});
  TrainRequest request = WholeRun();
  request.options.optimizer.name = "sgd";
  request.options.lr = 1e30;
  const Result<Left> have = TrainOn(fake.machine, request);
  const Result<Left> want = TrainOn(HostMachine(*reference), request);
  EXPECT_EQ(have.status().code(), ErrorCode::kFailed);
  EXPECT_EQ(have.status().message(), want.status().message());
}

// --- errors --------------------------------------------------------------------------------------

TEST(FakeTraining, AKernelThatFailsEndsTheRunAndAnotherDeviceTrainsOn) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  int64_t kernels = 0;
  {
    FakeMachine fake(*reference, {});
    ASSERT_TRUE(TrainOn(fake.machine, WholeRun()).ok());
    kernels = fake.device.kernels();
  }
  for (const int64_t kernel : {int64_t{0}, kernels / 2, kernels - 1}) {
    FakeMachine fake(*reference, {.fail_kernel = kernel});
    const Result<Left> run = TrainOn(fake.machine, WholeRun());
    EXPECT_EQ(run.status().code(), ErrorCode::kDevice) << kernel;
    EXPECT_TRUE(run.status().message().ends_with("failed as it was told to"))
        << run.status().message();
  }
  FakeMachine again(*reference, {});
  EXPECT_TRUE(TrainOn(again.machine, WholeRun()).ok());
}

TEST(FakeTraining, ADeviceWithoutRoomForTheArenaRefuses) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeMachine fake(*reference, {.memory_bytes = 1 << 15});
  const Result<Left> run = TrainOn(fake.machine, WholeRun());
  EXPECT_EQ(run.status().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(run.status().message(), "fake device: 65536 bytes are needed, 32768 of 32768 are free");
}

TEST(FakeTraining, SumsInATreeOfOneProcessAreAddedOnTheDevice) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeMachine fake(*reference, {});
  TrainRequest request = WholeRun();
  request.options.sums = "tree";
  request.options.slices = "2";
  request.options.accumulate = 1;
  const Result<Left> have = TrainOn(fake.machine, request);
  ExpectSame(TrainOn(HostMachine(*reference), request), have);
}

// --- timing --------------------------------------------------------------------------------------

TEST(FakeTraining, KernelsAreTimedOnTheDevice) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeMachine fake(*reference, {.most_delay_us = 0});
  const OpDef* exp = FindOp("exp");
  OpCall call{"exp", {{DType::kF32, {1000}}}, {{DType::kF32, {1000}}}, {}};
  const LayoutId layouts[] = {kRowMajor};
  const KernelCandidates candidates = fake.backend->Candidates(*exp, call, layouts);
  const auto seconds = TimeKernels(*fake.backend, exp, call, candidates.choices);
  ASSERT_TRUE(seconds.ok()) << seconds.status().message();
  EXPECT_GT(seconds->at(0), 0);
}

}  // namespace
}  // namespace ridge::fake
