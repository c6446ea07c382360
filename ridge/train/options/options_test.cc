#include "ridge/train/options/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "ridge/train/options/option_table.h"

namespace ridge {
namespace {

TrainOptions Valid() {
  TrainOptions options;
  options.model = "cnn";
  options.data = "fashion-mnist";
  return options;
}

TEST(OptionsTest, JsonKeepsAPathOfAnyBytes) {
  TrainOptions options;
  options.data = "csv:caf\xe9.csv";
  const std::string json = OptionsToJson(options);
  const Result<TrainOptions> back = OptionsFromJson(json, "options.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->data, options.data);
  EXPECT_EQ(OptionsToJson(*back), json);
}

TEST(OptionsTest, JsonGivesTheSameOptionsBack) {
  TrainOptions options = Valid();
  options.steps = 77;
  options.optimizer = {.name = "adamw", .weight_decay = 0.05};
  options.lr = 0.1 + 0.2;  // not a short decimal
  options.seed = UINT64_MAX;
  options.validation = "0.1";
  options.trace = true;
  options.data_dims = {"length=5"};
  const std::string json = OptionsToJson(options);
  const Result<TrainOptions> back = OptionsFromJson(json, "options.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(OptionsToJson(*back), json);
  EXPECT_EQ(back->steps, 77);
  EXPECT_EQ(back->data_dims, options.data_dims);
  EXPECT_FALSE(back->epochs.has_value());
  EXPECT_EQ(back->optimizer.weight_decay, 0.05);
  EXPECT_EQ(back->lr, 0.1 + 0.2);
  EXPECT_EQ(back->seed, UINT64_MAX);
}

TEST(OptionsTest, WhatIsNotOptionsIsInvalidData) {
  for (const char* text : {"", "[]", "{}", "{\"model\": 3}", "nonsense"}) {
    const Result<TrainOptions> options = OptionsFromJson(text, "run/options.json");
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_EQ(options.status().code(), ErrorCode::kInvalidData);
    EXPECT_TRUE(options.status().message().starts_with("run/options.json: ")) << text;
  }
}

TEST(OptionsTest, RunsOfOlderVersionsHaveDirectConvolutions) {
  TrainOptions options = Valid();
  options.conv = "auto";
  std::string json = OptionsToJson(options);
  const size_t at = json.find("  \"conv\": \"auto\",\n");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(OptionsFromJson(json, "options.json")->conv, "auto");
  EXPECT_EQ(OptionsFromJson(json.erase(at, 18), "options.json")->conv, "direct");
}

TEST(OptionsTest, RunsOfOlderVersionsHaveOneNodeAfterTheOther) {
  TrainOptions options = Valid();
  options.intra_op = 3;
  options.inter_op = "auto";
  std::string json = OptionsToJson(options);
  EXPECT_EQ(OptionsFromJson(json, "options.json")->intra_op, 3);
  EXPECT_EQ(OptionsFromJson(json, "options.json")->inter_op, "auto");
  const std::string lines = "  \"intra-op\": 3,\n  \"inter-op\": \"auto\",\n";
  const size_t at = json.find(lines);
  ASSERT_NE(at, std::string::npos);
  json.erase(at, lines.size());
  EXPECT_EQ(OptionsFromJson(json, "options.json")->intra_op, 0);
  EXPECT_EQ(OptionsFromJson(json, "options.json")->inter_op, "1");
}

TEST(OptionsTest, DocsShowTheDefaults) {
  const TrainOptions defaults;
  ForEachOption([&](const OptionInfo& option, auto get) {
    using T = std::remove_cvref_t<decltype(get(defaults))>;
    std::string shown;
    if constexpr (std::is_same_v<T, std::string>) shown = get(defaults);
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
      if (get(defaults) > 0) shown = fmt::format("{}", get(defaults));
    }
    EXPECT_TRUE(shown.empty() || option.doc.find("(" + shown) != std::string_view::npos)
        << option.key;
  });
}

TEST(OptionsTest, ResumeTakesWhatMayDifferAndRefusesTheRest) {
  const TrainOptions stored = Valid();
  TrainOptions given;
  given.keep = 9;
  given.lr = 0.5;
  given.conv = "direct";
  const Result<TrainOptions> merged = MergeResumed(stored, given, {"keep"});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->keep, 9);
  EXPECT_EQ(merged->lr, stored.lr);  // not given, so the default of `given` says nothing
  EXPECT_EQ(MergeResumed(stored, given, {"keep", "lr"}).status().message(),
            "--lr is 0.5; the run was started with 0.001. hint: leave it out, or start a new run "
            "with another --out");
  EXPECT_EQ(MergeResumed(stored, given, {"conv"}).status().message(),
            "--conv is \"direct\"; the run was started with \"auto\". hint: leave it out, or start "
            "a new run with another --out");
}

TEST(OptionsTest, ResumeTakesAnotherEndAndEpochsAndStepsReplaceEachOther) {
  TrainOptions stored = Valid();
  stored.epochs = 5;
  TrainOptions given;
  given.epochs = 10;
  given.steps = 70;
  EXPECT_EQ(MergeResumed(stored, given, {"epochs"})->epochs, 10);
  const Result<TrainOptions> steps = MergeResumed(stored, given, {"steps"});
  EXPECT_EQ(steps->steps, 70);
  EXPECT_FALSE(steps->epochs.has_value());
  EXPECT_EQ(MergeResumed(stored, given, {})->epochs, 5);
}

TEST(OptionsTest, AnIntervalIsStepsOrATime) {
  EXPECT_EQ(ParseInterval("--x", "100")->steps, 100);
  for (const auto& [text, seconds] :
       {std::pair("30s", 30.0), std::pair("10min", 600.0), std::pair("1.5h", 5400.0)}) {
    const Result<Interval> interval = ParseInterval("--x", text);
    ASSERT_TRUE(interval.ok()) << text;
    EXPECT_EQ(interval->seconds, seconds);
    EXPECT_EQ(interval->steps, 0);
    EXPECT_EQ(ParseInterval("--x", IntervalText(*interval))->seconds, seconds);
  }
  for (const char* text : {"", "0", "-3", "0s", "s", "10 min", "10m", "1e400s", "nans", "5steps"}) {
    EXPECT_EQ(
        ParseInterval("--x", text).status().message(),
        fmt::format("--x is '{}'; it must be a number of steps from 1, or a time: 30s, 10min, "
                    "2h",
                    text));
  }
}

TEST(OptionsTest, AnIntervalInStepsIsANumberInJson) {
  TrainOptions options = Valid();
  options.checkpoint_every = 100;
  EXPECT_NE(OptionsToJson(options).find("\"checkpoint-every\": 100,"), std::string::npos);
  EXPECT_EQ(OptionsFromJson(OptionsToJson(options), "o")->checkpoint_every, Interval(100));
  options.checkpoint_every = *ParseInterval("", "10min");
  EXPECT_NE(OptionsToJson(options).find("\"checkpoint-every\": \"600s\","), std::string::npos);
  EXPECT_EQ(OptionsFromJson(OptionsToJson(options), "o")->checkpoint_every.seconds, 600);
}

TEST(ParseShares, EqualOrAutomaticOrANumberForEachDevice) {
  using Parts = std::vector<int64_t>;
  EXPECT_EQ(ParseShares("equal")->parts, Parts{});
  EXPECT_TRUE(ParseShares("auto")->automatic);
  EXPECT_EQ(ParseShares("3,1")->parts, (Parts{3, 1}));
  for (const char* text : {"", "0,1", "3,", "3;1", "-1,2", "1.5,1", "1000001,1"}) {
    EXPECT_EQ(ParseShares(text).status().message(),
              std::string("--shares is '") + text +
                  "'; it must be equal, auto, or a number from 1 to 1000000 for each device, such "
                  "as 3,1");
  }
  TrainOptions options;
  EXPECT_TRUE(CheckShares(options, 5).ok());
  options.shares = "3,1";
  EXPECT_TRUE(CheckShares(options, 2).ok());
  EXPECT_EQ(CheckShares(options, 3).message(),
            "--shares is '3,1', for 2 devices; there are 3. hint: a number for each, or --shares "
            "equal");
  EXPECT_EQ(CheckShares(options, 1).message(),
            "--shares is '3,1', for 2 devices; there is 1. hint: a number for each, or --shares "
            "equal");
}

TEST(ParseDeviceMemory, ASizeOrAPartOfWhatIsFree) {
  EXPECT_EQ(ParseDeviceMemory("")->fraction, 0.9);
  EXPECT_EQ(ParseDeviceMemory("0.5")->fraction, 0.5);
  EXPECT_EQ(ParseDeviceMemory("1")->fraction, 1);
  EXPECT_EQ(ParseDeviceMemory("1.5GiB")->bytes, int64_t{3} << 29);
  EXPECT_EQ(ParseDeviceMemory("1073741824")->bytes, int64_t{1} << 30);
  for (const char* wrong : {"0", "-1", "1.5", "half", "0.5x", "-2GiB", "nan"}) {
    EXPECT_EQ(ParseDeviceMemory(wrong).status().message(),
              fmt::format("--device-memory is '{}'; it must be a size such as 20GiB, or a part of "
                          "what is free such as 0.9",
                          wrong));
  }
}

TEST(OptionsTest, WhatIsOfAGpuIsRefusedOnTheCpuAndTheOtherWayRound) {
  TrainOptions options = Valid();
  options.device_memory = "0.5";
  EXPECT_EQ(CheckOptions(options).message(),
            "--device-memory is of a GPU, and --device is 'cpu'. hint: --fit SIZE");
  options.device_memory.clear();
  options.kernel_launch = "sync";
  EXPECT_EQ(CheckOptions(options).message(),
            "--kernel-launch is of a GPU, and --device is 'cpu'. hint: --device cuda");
  options.kernel_launch = "graph";
  options.copy_stream = "off";
  EXPECT_EQ(CheckOptions(options).message(),
            "--copy-stream is of a GPU, and --device is 'cpu'. hint: --device cuda");
  options.device = "cuda:1";
  EXPECT_TRUE(CheckOptions(options).ok());
  options.precision = "tf32";
  EXPECT_TRUE(CheckOptions(options).ok());
  options.precision = "f16";
  EXPECT_TRUE(CheckOptions(options).ok());
  options.mesh = "d=2";
  EXPECT_EQ(CheckOptions(options).message(),
            "--precision f16: all gradients together decide on the loss scale, and a --mesh has "
            "parts of them. hint: --precision bf16");
}

TEST(OptionsTest, WhatRanksWithGpusDoNotExchangeIsRefused) {
  const auto refusal = [](const char* mesh, const char* wire, const char* overlap) {
    TrainOptions options = Valid();
    options.device = "cuda";
    options.mesh = mesh;
    options.wire = wire;
    options.overlap = overlap;
    options.accumulate = 4;
    const Status status = CheckOptions(options);
    EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
    return status.message();
  };
  const std::string on_host = "exchanges on the host, which does not reach the memory of 'cuda'. ";
  EXPECT_EQ(refusal("d=2", "f32", "auto"),
            "--mesh d=2: a mesh " + on_host + "hint: --devices 2 without --mesh");
  EXPECT_EQ(refusal("p=4", "f32", "off"),
            "--mesh p=4: a mesh " + on_host + "hint: --devices 4 without --mesh");
  EXPECT_EQ(refusal("", "bf16", "auto"),
            "--wire bf16 is for memory that the host reaches, and --device is 'cuda'. hint: --wire "
            "f32");
  EXPECT_EQ(refusal("", "f32", "on"), "--overlap on " + on_host + "hint: --overlap off");
}

TEST(OptionsTest, ALossScaleIsOfF16) {
  TrainOptions options = Valid();
  EXPECT_FALSE(LossScaleOf(options)->has_value());
  options.loss_scale = "0";
  EXPECT_EQ(CheckOptions(options).message(),
            "--loss-scale is '0'; it must be dynamic, or a number from 1 to 16777216");
  options.loss_scale = "dynamic";
  for (const char* precision : {"f32", "bf16", "auto"}) {
    options.precision = precision;
    EXPECT_EQ(CheckOptions(options).message(),
              std::string("--loss-scale is 'dynamic'; it is of --precision f16, and --precision "
                          "is ") +
                  precision + ". hint: leave it out");
  }
  options.precision = "f16";
  EXPECT_TRUE(CheckOptions(options).ok());
  EXPECT_TRUE((*LossScaleOf(options))->dynamic);
  options.loss_scale = "1024";
  EXPECT_EQ((*LossScaleOf(options))->scale, 1024);
}

TEST(OptionsTest, WhatAPlanChoseReplacesAutoAlone) {
  TrainOptions planned;
  planned.slices = "2";
  planned.recompute = "all";
  planned.precision = "f32";
  TrainOptions options = planned;
  options.slices = "4";
  options.recompute = "auto";
  options.precision = "bf16";
  options.precision_for = {"head.*=f32"};
  TakeChoices(planned, options);
  EXPECT_EQ(options.slices, "4");
  EXPECT_EQ(options.recompute, "all");
  EXPECT_EQ(options.precision, "bf16");
  EXPECT_EQ(options.precision_for, std::vector<std::string>{"head.*=f32"});
  options.precision = "auto";
  TakeChoices(planned, options);
  EXPECT_EQ(options.precision, "f32");
  EXPECT_TRUE(options.precision_for.empty());
}

TEST(OptionsTest, PatienceNeedsAValidationSet) {
  TrainOptions options = Valid();
  options.patience = 3;
  EXPECT_EQ(CheckOptions(options).message(),
            "--patience needs validation data. hint: --validation 0.1");
  options.validation = "0.1";
  EXPECT_TRUE(CheckOptions(options).ok());
}

TEST(OptionsTest, ValidationIsAFractionOrData) {
  EXPECT_EQ(HeldOutFraction("auto"), 0.2);
  EXPECT_EQ(HeldOutFraction("0.25"), 0.25);
  EXPECT_EQ(HeldOutFraction(""), std::nullopt);
  EXPECT_EQ(HeldOutFraction("csv:0.1"), std::nullopt);
}

TEST(ParseDevices, ANumberOrAListOfDifferentOnes) {
  EXPECT_EQ(*ParseDevices("1"), 1);
  EXPECT_EQ(*ParseDevices("8"), 8);
  EXPECT_EQ(*ParseDevices("0,1"), 2);
  EXPECT_EQ(*ParseDevices("3,0,7"), 3);
  EXPECT_EQ(ListedDevices("3,0,7"), (std::vector<int64_t>{3, 0, 7}));
  EXPECT_TRUE(ListedDevices("3").empty());
  for (const char* text : {"", "0", "-2", "1.5", "two", "0,", ",", "0,0", "0,-1", "65537"}) {
    EXPECT_EQ(ParseDevices(text).status().message(),
              std::string("--devices is '") + text +
                  "'; it must be a number from 1 to 65536, or a list of different devices such as "
                  "0,1");
  }
  TrainOptions options;
  options.model = "mlp";
  options.data = "synthetic";
  options.devices = "none";
  EXPECT_EQ(CheckOptions(options).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ridge
