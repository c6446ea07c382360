#include "ridge/plan/hardware/hardware.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

namespace ridge {
namespace {

std::string ErrorOf(const std::string& text) {
  const Result<std::vector<Hardware>> parsed = ParseHardware(text, "my.toml");
  EXPECT_FALSE(parsed.ok()) << text;
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), ErrorCode::kInvalidData);
  return parsed.status().message();
}

const Hardware& Entry(const std::string& id) {
  for (const Hardware& device : HardwareCatalog()) {
    if (device.id == id) return device;
  }
  ADD_FAILURE() << id;
  return HardwareCatalog().front();
}

TEST(HardwareTest, EveryEntryHasAnOwnIdASourceAndAConfidence) {
  std::set<std::string> ids;
  for (const Hardware& device : HardwareCatalog()) {
    EXPECT_TRUE(ids.insert(device.id).second) << device.id;
    EXPECT_FALSE(device.name.empty() || device.vendor.empty() || device.source.empty())
        << device.id;
    const std::set<std::string> confidences = {"datasheet", "secondary", "recalled"};
    EXPECT_EQ(confidences.count(device.confidence), 1u) << device.id;
  }
  EXPECT_EQ(ids.size(), 87u);
}

// A wrong count of cores, clock or rate would show: the sheets' peaks are products of these.
TEST(HardwareTest, PeaksFromCoresAndClocksAreTheSheetsWithinTwoPercent) {
  int f32 = 0, f16 = 0;
  for (const Hardware& device : HardwareCatalog()) {
    if (const auto computed = device.ComputedFp32Tflops(); computed && device.fp32_tflops) {
      EXPECT_LT(std::abs(*computed / *device.fp32_tflops - 1), 0.02) << device.id;
      ++f32;
    }
    if (const auto computed = device.ComputedFp16Tflops(); computed && device.fp16_tflops) {
      EXPECT_LT(std::abs(*computed / *device.fp16_tflops - 1), 0.02) << device.id;
      ++f16;
    }
  }
  EXPECT_GE(f32, 60);
  EXPECT_GE(f16, 35);
}

// Narrow types are never slower, and a card's supply exceeds its power.
TEST(HardwareTest, RatesAndPowersArePlausible) {
  const auto at_least = [](const Hardware& device, Hardware::Number more, Hardware::Number less) {
    if (more && less) {
      EXPECT_GE(*more, 0.99 * *less) << device.id;
    }
  };
  for (const Hardware& device : HardwareCatalog()) {
    at_least(device, device.fp16_tflops, device.tf32_tflops);
    at_least(device, device.fp8_tflops, device.fp16_tflops);
    at_least(device, device.fp32_tflops, device.fp64_tflops);
    at_least(device, device.supply_w, device.power_w);
    EXPECT_GT(device.memory_gb.value_or(1), 0) << device.id;
  }
}

TEST(HardwareTest, TheTableOfADeviceReadsBackTheSame) {
  for (const Hardware& device : HardwareCatalog()) {
    const std::string text = HardwareToml(device);
    const Result<std::vector<Hardware>> read = ParseHardware(text, "x.toml");
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_EQ(read->size(), 1u);
    EXPECT_EQ(HardwareToml(read->front()), text);
    EXPECT_EQ(UnknownKeys(read->front()), UnknownKeys(device));
  }
  Hardware hostile;
  hostile.id = "a\"] b";
  hostile.name = "line\nand \\ and \" and \x01";
  const Result<std::vector<Hardware>> read = ParseHardware(HardwareToml(hostile), "x.toml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->front().id, hostile.id);
  EXPECT_EQ(read->front().name, hostile.name);
}

TEST(HardwareTest, LikeTakesWhatATableLeavesOut) {
  const auto read = ParseHardware("[mine]\nlike = \"h100-sxm\"\nmemory_gb = 96\n", "my.toml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->front().id, "mine");
  EXPECT_EQ(read->front().memory_gb, 96);
  EXPECT_EQ(read->front().fp32_tflops, Entry("h100-sxm").fp32_tflops);
}

TEST(HardwareTest, MistakesInAFileHaveTheirLine) {
  EXPECT_EQ(ErrorOf(""), "my.toml: has no device. hint: begin with a line such as [my-gpu]");
  EXPECT_EQ(ErrorOf("memory_gb = 8\n"),
            "my.toml:1: memory_gb stands outside of a device. hint: begin with a line such as "
            "[my-gpu]");
  EXPECT_EQ(ErrorOf("[a]\nname = \"A\"\nmemmory_gb = 8\nl2_mb = true\n"),
            "my.toml:3: no key 'memmory_gb'; did you mean 'memory_gb'? hint: `ridge devices show "
            "h100-sxm --toml` has most keys");
  EXPECT_EQ(ErrorOf("[a]\nl2_mb = \"8\"\n"),
            "my.toml:2: l2_mb is a text; it must be a number of at least 0");
  EXPECT_EQ(ErrorOf("[a]\nl2_mb = -1\n"),
            "my.toml:2: l2_mb is a number; it must be a number of at least 0");
  EXPECT_EQ(ErrorOf("[a]\nl2_mb = nan\n"),
            "my.toml:2: l2_mb is a number; it must be a number of at least 0");
  EXPECT_EQ(ErrorOf("[a]\necc = 1\n"), "my.toml:2: ecc is a number; it must be true or false");
  EXPECT_EQ(ErrorOf("[a]\nname = 1\n"), "my.toml:2: name is a number; it must be a text");
  EXPECT_EQ(ErrorOf("[a]\nlike = \"h10-sxm\"\n"),
            "my.toml:2: like is 'h10-sxm', which is no device; did you mean 'h100-sxm'?");
  EXPECT_EQ(ErrorOf("[a]\nname =\n").substr(0, 10), "my.toml:2:");
}

TEST(HardwareTest, ADeviceIsFoundByItsIdAndInFiles) {
  ASSERT_TRUE(FindHardware("rtx4090").ok());
  EXPECT_EQ(FindHardware("rtx4909").status().message(),
            "no device 'rtx4909'; did you mean 'rtx4090'? hint: `ridge devices` lists all");
  EXPECT_EQ(FindHardware("abacus").status().message(),
            "no device 'abacus'. hint: `ridge devices` lists all");
  const std::string path = std::filesystem::temp_directory_path() / "ridge_hardware_test.toml";
  std::ofstream(path) << "[one]\nmemory_gb = 1\n[two]\nmemory_gb = 2\n";
  EXPECT_EQ(FindHardware(path + ":two")->memory_gb, 2);
  EXPECT_EQ(FindHardware(path).status().message(), path + " has 2 devices. hint: " + path + ":one");
  EXPECT_EQ(FindHardware(path + ":tow").status().message(),
            path + " has no device 'tow'; did you mean 'two'?");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ridge
