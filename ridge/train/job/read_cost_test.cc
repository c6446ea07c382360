#include "ridge/train/job/read_cost.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ridge {
namespace {

// Samples that take a millisecond, and fail where they are odd and `bad`.
class SlowSource : public Source {
 public:
  SlowSource(int64_t size, bool slow, bool bad)
      : Source("slow", {{"x", {DType::kF32, {2}}}}, size), slow_(slow), bad_(bad) {}
  Status Read(SampleAt at, int, std::span<char>, void*) const override {
    ++reads;
    if (bad_ && at.index % 2 == 1) return Status(ErrorCode::kInvalidData, "is bad");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status();
  }
  bool reads_slowly() const override { return slow_; }
  int64_t resident_bytes() const override { return 0; }

  mutable std::atomic<int> reads{0};

 private:
  const bool slow_, bad_;
};

const BatchSpec kSpec = {{{"x", {DType::kF32, {2}}}}};

TEST(ReadCost, IsTheTimeOfASampleWithinABoundedTime) {
  for (const bool bad : {false, true}) {
    const auto source = std::make_shared<SlowSource>(100'000, /*slow=*/true, bad);
    EXPECT_GE(MeasureReadSeconds(source, kSpec), 1e-3);
    EXPECT_GE(source->reads, 4);
    EXPECT_LE(source->reads, 64);
  }
  EXPECT_GE(MeasureReadSeconds(std::make_shared<SlowSource>(1, true, false), kSpec), 1e-3);
}

TEST(ReadCost, OfFastDataTheLeastOfSeveralPassesCounts) {
  const auto source = std::make_shared<SlowSource>(8, /*slow=*/false, false);
  EXPECT_GE(MeasureReadSeconds(source, kSpec), 1e-3);
  EXPECT_EQ(source->reads, 3 * 8);
  EXPECT_EQ(MeasureReadSeconds(nullptr, kSpec), 0);
}

TEST(ReadCost, ReadersTakeFreeCoresAndHoldUpTheStepOnTheOthers) {
  EXPECT_EQ(SecondsBesideReading(2, 4, 0, 4, 4), 2);
  EXPECT_EQ(SecondsBesideReading(2, 2, 1, 1, 2), 3);    // one reader, no core is free
  EXPECT_EQ(SecondsBesideReading(2, 4, 4, 4, 4), 3);    // four readers at once
  EXPECT_EQ(SecondsBesideReading(2, 2, 4, 2, 3), 3);    // 3 s on the free core, 1 s on the step's
  EXPECT_EQ(SecondsBesideReading(2, 1, 3, 3, 4), 2);    // three cores are free to read
  EXPECT_EQ(SecondsBesideReading(2, 1, 30, 3, 8), 10);  // three workers read
  EXPECT_EQ(SecondsBesideReading(2, 1, 30, 16, 2), 16);
  EXPECT_EQ(SecondsBesideReading(2, 1, 30, 16, 0), 2);
}

}  // namespace
}  // namespace ridge
