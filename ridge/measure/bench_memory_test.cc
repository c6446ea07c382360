#include "ridge/measure/bench_memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include "ridge/backend/reference/reference_backend.h"

namespace ridge {
namespace {

constexpr int64_t kBytes = 64 << 10;

// Kernels of the host, with what is done to the memory between them.
class Damaging : public Kernel {
 public:
  Damaging(std::unique_ptr<Kernel> write, std::function<void(uint64_t*)> damage)
      : write_(std::move(write)), damage_(std::move(damage)) {}
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    RIDGE_RETURN_IF_ERROR(write_->Enqueue(stream, buffers));
    damage_(static_cast<uint64_t*>(buffers.outputs[0]));
    return Status();
  }

 private:
  std::unique_ptr<Kernel> write_;
  const std::function<void(uint64_t*)> damage_;
};

class BenchMemoryTest : public testing::Test {
 protected:
  BenchMemoryResult Run(MemoryPattern damaged, const std::function<void(uint64_t*)>& damage,
                        int64_t rounds = 1) {
    Device& device = backend_->device();
    const auto make = [&](const PatternCall& call) -> Result<PatternKernels> {
      PatternKernels kernels = MakeHostPatternKernels(device, backend_->threads(), call);
      if (call.pattern == damaged)
        kernels.write = std::make_unique<Damaging>(std::move(kernels.write), damage);
      return kernels;
    };
    Result<BenchMemoryResult> result = BenchMemory(device, make, {kBytes, rounds}, nullptr);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
  }
  BenchMemoryResult RunSound(int64_t rounds = 1) {
    return Run(
        MemoryPattern::kRandom, [](uint64_t*) {}, rounds);
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
};

TEST_F(BenchMemoryTest, OfSoundMemoryFindsNothing) {
  const BenchMemoryResult result = RunSound(/*rounds=*/3);
  ASSERT_EQ(result.patterns.size(), 4);
  EXPECT_GE(result.bytes, kBytes);
  for (const PatternResult& of : result.patterns) {
    EXPECT_EQ(of.wrong_words, 0);
    EXPECT_GT(of.write_s, 0);
    EXPECT_GT(of.verify_s, 0);
  }
  EXPECT_FALSE(result.first_wrong);
  EXPECT_TRUE(CheckMemory("cpu", result).ok());
}

TEST_F(BenchMemoryTest, EveryPatternFindsOneBitThatFlipped) {
  for (const MemoryPattern pattern : kMemoryPatterns) {
    const BenchMemoryResult result = Run(pattern, [](uint64_t* memory) { memory[700] ^= 1 << 5; });
    for (const PatternResult& of : result.patterns)
      EXPECT_EQ(of.wrong_words, of.pattern == pattern ? 1 : 0) << MemoryPatternName(of.pattern);
    ASSERT_TRUE(result.first_wrong);
    EXPECT_EQ(result.first_wrong->index, 700);
    EXPECT_EQ(result.first_wrong->is ^ PatternWord(result.first_wrong->call, 700), 1 << 5);
  }
}

TEST_F(BenchMemoryTest, TellsTheFirstWrongWordAndCountsAll) {
  const BenchMemoryResult result = Run(
      MemoryPattern::kAddress, [](uint64_t* memory) { memory[4] = memory[900] = 0xff; },
      /*rounds=*/2);
  const Status status = CheckMemory("cuda:0", result);
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(status.message(),
            "cuda:0: 4 words came back wrong; the first, at byte 32 of pattern 'address', is "
            "0x00000000000000ff and must be 0x0000000000000020. hint: train on another device; "
            "nvidia-smi -q -d ECC has a GPU's counts");
}

// Each read is one error more than the one before.
class FailingSource : public CounterSource {
 public:
  DeviceCounters Read() override {
    const double n = ++reads_;
    return {.corrected_errors = 10 * n, .uncorrected_errors = n};
  }

 private:
  double reads_ = 0;
};

TEST_F(BenchMemoryTest, ErrorsThatEccCouldNotCorrectAreTheDevices) {
  Device& device = backend_->device();
  FailingSource source;
  const auto result = BenchMemory(
      device, [&](const PatternCall& call) { return MakeHostPatternKernels(device, 1, call); },
      {kBytes, 1}, &source);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(CheckMemory("cuda:0", *result).message(),
            "cuda:0: ECC could not correct 1 error. hint: train on another device; nvidia-smi -q "
            "-d ECC has a GPU's counts");
  const auto json = nlohmann::json::parse(BenchMemoryToJson("cuda:0", *result));
  EXPECT_EQ(json["corrected_errors"], 10);
  EXPECT_EQ(json["uncorrected_errors"], 1);
}

TEST_F(BenchMemoryTest, JsonHasNullForCountsThatNobodyTells) {
  const auto json = nlohmann::json::parse(BenchMemoryToJson("cpu", RunSound()));
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["patterns"][3]["pattern"], "walking ones");
  EXPECT_EQ(json["patterns"][3]["wrong_words"], 0);
  EXPECT_TRUE(json["uncorrected_errors"].is_null());
}

TEST(MemoryPattern, WordsDifferWhereAddressesOrBitsMayBeStuck) {
  for (const MemoryPattern pattern :
       {MemoryPattern::kAddress, MemoryPattern::kInverse, MemoryPattern::kRandom}) {
    std::set<uint64_t> words;
    for (uint64_t i = 0; i < 1000; ++i) words.insert(PatternWord({pattern}, i));
    EXPECT_EQ(words.size(), 1000) << MemoryPatternName(pattern);
  }
  uint64_t ones = 0;
  for (uint64_t i = 0; i < 64; ++i) {
    const uint64_t word = PatternWord({MemoryPattern::kWalkingOnes}, i);
    EXPECT_EQ(std::popcount(word), 1);
    EXPECT_EQ(PatternWord({MemoryPattern::kWalkingOnes, 0, /*round=*/1}, i), std::rotl(word, 1));
    ones |= word;
  }
  EXPECT_EQ(ones, ~uint64_t{0});
}

}  // namespace
}  // namespace ridge
