#include "ridge/plan/choose/scenario.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(ScenarioTest, TimesRatesAndPowersHaveTheirUnits) {
  EXPECT_DOUBLE_EQ(*ParseSeconds("--latency", "80ms"), 0.08);
  EXPECT_DOUBLE_EQ(*ParseSeconds("--latency", "1.5s"), 1.5);
  EXPECT_DOUBLE_EQ(*ParseRate("--rate", "120/s"), 120);
  EXPECT_DOUBLE_EQ(*ParseRate("--rate", "90/min"), 1.5);
  EXPECT_DOUBLE_EQ(*ParseWatts("--power", "70W"), 70);
  EXPECT_DOUBLE_EQ(*ParseWatts("--power", "70"), 70);
  EXPECT_EQ(ParseSeconds("--latency", "80").status().message(),
            "--latency is '80'; it must be a time above 0, such as 80ms or 1.5s");
  EXPECT_EQ(ParseRate("--rate", "0/s").status().message(),
            "--rate is '0/s'; it must be a number above 0 a time, such as 120/s, 90/min or 2/h");
  EXPECT_EQ(ParseWatts("--power", "lots").status().message(),
            "--power is 'lots'; it must be a number above 0 with W, such as 70W");
}

TEST(ScenarioTest, StreamsAreVideosAndPictures) {
  const Result<ServingStream> video = ParseStream("input", "video:1280x720@25:hevc");
  ASSERT_TRUE(video.ok()) << video.status().message();
  EXPECT_EQ(video->pictures.codec, "hevc");
  EXPECT_EQ(video->pictures.width, 1280);
  EXPECT_EQ(video->pictures.height, 720);
  EXPECT_EQ(video->fps, 25);
  EXPECT_EQ(ParseStream("input", "video:1920x1080@30")->pictures.codec, "h264");
  EXPECT_EQ(ParseStream("input", "jpeg:500x375@2.5")->pictures.codec, "jpeg");
  for (const char* wrong :
       {"", "video", "video:1920x1080", "video:1920@30", "video:0x1080@30", "video:1920x1080@0",
        "video:1920x1080@30:jpeg", "video:1920x1080@30:mp4", "jpeg:8x8@1:h264", "webcam:8x8@1"}) {
    EXPECT_EQ(ParseStream("input", wrong).status().code(), ErrorCode::kInvalidArgument) << wrong;
  }
}

TEST(ScenarioTest, AModelTakesTheRateOfItsStream) {
  const Result<ServingLoad> load = ParseScenario(R"(
name = "cameras"
latency = "80ms"
power = "70W"
memory = "8GiB"
[[stream]]
name = "door"
count = 4
input = "video:1920x1080@30"
[[stream]]
name = "street"
input = "video:1920x1080@15"
[[model]]
model = "resnet50"
stream = "street"
precision = "f16"
batch = 2
[[model]]
model = "yolov8n"
stream = "door"
rate = "10/s"
[[model]]
model = "llama"
rate = "2/s"
copies = 3
prompt = 100
output = 20
sequences = 8
)",
                                                 "s.toml");
  ASSERT_TRUE(load.ok()) << load.status().message();
  EXPECT_EQ(load->name, "cameras");
  EXPECT_DOUBLE_EQ(*load->limits.latency_s, 0.08);
  EXPECT_DOUBLE_EQ(*load->limits.power_w, 70);
  EXPECT_EQ(*load->limits.memory_bytes, int64_t{8} << 30);
  ASSERT_EQ(load->streams.size(), 2u);
  EXPECT_EQ(load->streams[0].count, 4);
  ASSERT_EQ(load->models.size(), 3u);
  EXPECT_EQ(load->models[0].stream, 1);
  EXPECT_EQ(load->models[0].rate_s, 15);
  EXPECT_EQ(load->models[0].batch, 2);
  EXPECT_EQ(load->models[1].stream, 0);
  EXPECT_EQ(load->models[1].rate_s, 10);
  EXPECT_EQ(load->models[2].stream, -1);
  EXPECT_EQ(load->models[2].copies, 3);
  EXPECT_EQ(load->models[2].batch, 8);
  EXPECT_EQ(load->models[2].tokens->prompt, 100);
  EXPECT_EQ(load->models[2].tokens->output, 20);
}

TEST(ScenarioTest, TheOnlyStreamIsThatOfAllModels) {
  const Result<ServingLoad> load = ParseScenario(
      "[[stream]]\ninput = \"jpeg:640x480@5\"\n[[model]]\nmodel = \"a\"\n[[model]]\nmodel = "
      "\"b\"\n",
      "s.toml");
  ASSERT_TRUE(load.ok()) << load.status().message();
  EXPECT_EQ(load->models[1].stream, 0);
  EXPECT_EQ(load->models[1].rate_s, 5);
}

std::string Error(const std::string& text) {
  return ParseScenario(text, "s.toml").status().message();
}

TEST(ScenarioTest, MistakesAreToldWithTheirLine) {
  EXPECT_EQ(Error("latency = 80"), "s.toml:1: latency must be a text, such as \"...\"");
  EXPECT_EQ(Error("latency = \"80\""),
            "s.toml:1: latency is '80'; it must be a time above 0, such as 80ms or 1.5s");
  EXPECT_EQ(Error("memory = \"much\""),
            "s.toml:1: memory is 'much'; it must be a size, such as 8GiB");
  EXPECT_EQ(Error("name = \"x\"\n"), "s.toml: has no model. hint: begin with a line [[model]]");
  EXPECT_EQ(Error("model = \"resnet50\"\n"),
            "s.toml:1: model must be tables; begin each with a line [[model]]");
  EXPECT_EQ(Error("[[model]]\nrate = \"2/s\"\n"), "s.toml:1: a [[model]] has no `model`");
  EXPECT_EQ(Error("[[model]]\nmodel = \"a\"\nbatch = 0\n"),
            "s.toml:3: batch must be a whole number from 1 to 1048576");
  EXPECT_EQ(Error("[[model]]\nmodel = \"a\"\nstream = \"door\"\n"),
            "s.toml:1: no stream has the name 'door'");
  EXPECT_EQ(Error("[[stream]]\ncount = 2\n[[model]]\nmodel = \"a\"\n"),
            "s.toml:1: a [[stream]] has no `input`");
  EXPECT_EQ(Error("[[model]]\nmodel = \"a\"\nsequence = 2\n"),
            "s.toml:3: no key 'sequence'; did you mean 'sequences'? hint: the keys are batch, "
            "copies, model, output, precision, prompt, rate, sequences, stream");
  EXPECT_EQ(Error("[[model]]\nmodel = \"a\"\nrate = \"1/s\"\n[[model]]\nmodel = \"b\"\n"),
            "s.toml: b has no rate, and another model has one. hint: rate = \"2/s\"");
  EXPECT_TRUE(Error("[[model\n").starts_with("s.toml:1: "));
}

}  // namespace
}  // namespace ridge
