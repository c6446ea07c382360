// Random cuts of models under random schedules: any order that the checker lets pass trains as one
// device does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ridge/models/layers.h"
#include "ridge/models/model.h"
#include "ridge/pipeline/check_schedule.h"
#include "ridge/pipeline/cuts.h"
#include "tests/partition/small_resnet.h"
#include "tests/pipeline/whole_step.h"

namespace ridge {
namespace {

constexpr int kSeeds = 24;

using Random = std::mt19937_64;

int Below(Random& random, int end) {
  return static_cast<int>(random() % static_cast<uint64_t>(end));
}

// Devices take turns by chance; each does by chance one of what it can.
PipelineSchedule RandomSchedule(int devices, int chunks, int micros, bool separates,
                                Random& random) {
  PipelineSchedule s;
  s.name = "random";
  s.devices = devices;
  s.chunks = chunks;
  s.micros = micros;
  s.separates_weights = separates;
  s.ops.resize(static_cast<size_t>(devices));
  std::vector<int> f(static_cast<size_t>(chunks), 0), b = f, w = f;  // done, by chunk
  const auto at = [](std::vector<int>& done, int chunk) -> int& {
    return done[static_cast<size_t>(chunk)];
  };
  const int all = chunks * micros * (separates ? 3 : 2);
  for (int done = 0; done < all;) {
    const int c = Below(random, chunks);
    std::vector<Operation>& ops = s.ops[static_cast<size_t>(s.DeviceOf(c))];
    const int what = Below(random, 3);
    if (what == 0 && at(f, c) < (c == 0 ? micros : at(f, c - 1))) {
      ops.push_back({PipelineOp::kForward, c, at(f, c)++});
    } else if (what == 1 && at(b, c) < at(f, c) && (c + 1 == chunks || at(b, c) < at(b, c + 1))) {
      ops.push_back({PipelineOp::kBackward, c, at(b, c)++});
    } else if (what == 2 && separates && at(w, c) < at(b, c)) {
      ops.push_back({PipelineOp::kWeights, c, at(w, c)++});
    } else {
      continue;
    }
    ++done;
  }
  InsertMessages(s);
  return s;
}

// Borders that no changing variable is on both sides of; fewer where there are not so many.
std::vector<int> RandomBorders(const WholeStep& step, int chunks, Random& random) {
  const StageCosts costs(step.untied.micro, step.untied.update, step.untied.places,
                         std::vector<double>(step.untied.micro.nodes().size(), 1));
  std::vector<int> possible;
  for (int b = 1; b < costs.positions(); ++b)
    if (costs.SharedAt(b).empty()) possible.push_back(b);
  std::shuffle(possible.begin(), possible.end(), random);
  possible.resize(static_cast<size_t>(chunks) - 1);
  std::sort(possible.begin(), possible.end());
  return possible;
}

// Numbers that are drawn, which depend on no variable; the backward pass reads the noise too.
Result<Graph> WithNoise() {
  GraphBuilder b("with_noise");
  const ModelOptions options{.batch = 4, .dtype = DType::kF64};
  Value x = Flatten(ImageInput(b, options, {1, 4, 4}));
  const Value rng = b.Input("rng", {DType::kI64, {3}});
  for (int64_t layer = 0; layer < 3; ++layer) {
    x = Relu(b.Linear(x, 8, fmt::format("layer{}", layer)));
    x = Op("dropout", {x, rng}, {{"rate", 0.25}, {"stream", 2 * layer}});
    x = x * Op("random_uniform", {rng},
               {{"dims", x.dims()}, {"dtype", "f64"}, {"stream", 2 * layer + 1}});
  }
  ClassifierEnd(b, options, b.Linear(x, 4, "fc"));
  return b.Build();
}

Result<Graph> RandomModel(Random& random) {
  static constexpr const char* kSpecs[] = {
      "mlp",
      "bert:layers=1,hidden=8,heads=2,inner=16,tokens=4,positions=8,vocab=12",
      "gpt:layers=2,hidden=8,heads=2,context=4,vocab=12,tied=1,documents=1",
      "llama:layers=1,hidden=8,heads=2,kv_heads=1,inner=12,context=4,vocab=12,tied=1",
      "lstm:layers=2,hidden=4,tokens=3,vocab=12",
      "whisper_tiny:layers=1,hidden=8,heads=2,mels=4,frames=8,context=4,vocab=12",
  };
  constexpr int kOthers = 2;
  const int which = Below(random, static_cast<int>(std::size(kSpecs)) + kOthers);
  if (which == 0) return SmallResnet();
  if (which == 1) return WithNoise();
  return BuildModel(kSpecs[which - kOthers], {.batch = 2, .dtype = DType::kF64});
}

void CheckSeed(int seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(static_cast<uint64_t>(seed));
  const Result<Graph> forward = RandomModel(random);
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  const int devices = 1 + Below(random, 3), chunks = devices * (1 + Below(random, 2));
  const int micros = 2 + Below(random, 4);
  StepOptions options;
  if (Below(random, 2) == 0) options.clip_norm = 0.01;
  const Result<WholeStep> step = MakeWholeStep(*forward, micros, options);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const std::vector<int> borders = RandomBorders(*step, chunks, random);
  const Result<StepResults> want = RunWhole(*step, micros, /*updates=*/1);
  ASSERT_TRUE(want.ok()) << want.status().message();
  std::optional<StepResults> first;
  for (bool separates : {false, true}) {
    const PipelineSchedule schedule = RandomSchedule(devices, chunks, micros, separates, random);
    const Status status = CheckSchedule(schedule, micros);
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << ScheduleText(schedule);
    const Result<StepResults> got = RunStages(*step, borders, schedule, /*updates=*/1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(CompareResults(*got, *want), "") << forward->name << "\n" << ScheduleText(schedule);
    if (!first) first = step->untied.copies.empty() ? *want : *got;
    ASSERT_TRUE(*got == *first) << "other bits under\n" << ScheduleText(schedule);
  }
}

TEST(Pipeline, AnyCutUnderAnyScheduleTrainsAsOneDevice) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    CheckSeed(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace ridge
