#include "ridge/core/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ridge {
namespace {

TEST(Units, BytesUsePowersOfTwo) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(12897485), "12.3 MiB");
  EXPECT_EQ(FormatBytes(int64_t{24} << 30), "24.0 GiB");
  EXPECT_EQ(FormatBytes((int64_t{1} << 20) - 1), "1.00 MiB");  // never "1024 KiB"
  EXPECT_EQ(FormatBytes(int64_t{1000} << 20), "1000 MiB");
  EXPECT_EQ(FormatBytes(-2048), "-2.00 KiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<int64_t>::max()), "8.00 EiB");
}

TEST(Units, SecondsChooseTheirUnitAfterRounding) {
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(3.5e-9), "3.50 ns");
  EXPECT_EQ(FormatSeconds(1.62e-3), "1.62 ms");
  EXPECT_EQ(FormatSeconds(45.6e-6), "45.6 us");
  EXPECT_EQ(FormatSeconds(9.999e-4), "1.00 ms");
  EXPECT_EQ(FormatSeconds(0.99999), "1.00 s");
  EXPECT_EQ(FormatSeconds(99.9), "99.9 s");
  EXPECT_EQ(FormatSeconds(-0.5), "-500 ms");
}

TEST(Units, LongTimesReadLikeAClock) {
  EXPECT_EQ(FormatSeconds(99.96), "1 min 40 s");
  EXPECT_EQ(FormatSeconds(125), "2 min 05 s");
  EXPECT_EQ(FormatSeconds(3599.6), "1 h 00 min");
  EXPECT_EQ(FormatSeconds(3 * 3600 + 7 * 60), "3 h 07 min");
  EXPECT_EQ(FormatSeconds(54 * 86400), "54 d 00 h");
}

TEST(Units, IntegersKeepAllDigits) {
  EXPECT_EQ(FormatInteger(999), "999");
  EXPECT_EQ(FormatInteger(25557032), "25,557,032");
  EXPECT_EQ(FormatInteger(-1000), "-1,000");
}

TEST(Units, OneIsSingular) {
  EXPECT_EQ(FormatCountOf(0, "node"), "0 nodes");
  EXPECT_EQ(FormatCountOf(1, "node"), "1 node");
  EXPECT_EQ(FormatCountOf(2, "node"), "2 nodes");
  EXPECT_EQ(FormatCountOf(2, "class"), "2 classes");
  EXPECT_EQ(FormatCountOf(3, "box"), "3 boxes");
  EXPECT_EQ(FormatCountOf(4, "batch"), "4 batches");
  EXPECT_EQ(FormatCountOf(5, "epoch"), "5 epochs");
}

TEST(Units, CountsAreGroupedThenShortened) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(101770), "101,770");
  EXPECT_EQ(FormatCount(-1234567), "-1,234,567");
  EXPECT_EQ(FormatCount(-100), "-100");
  EXPECT_EQ(FormatCount(11689512), "11.7 M");
  EXPECT_EQ(FormatCount(175e9), "175 G");
  EXPECT_EQ(FormatCount(0.25), "0.25");
  EXPECT_EQ(FormatCount(52310.4), "52,310");
}

TEST(Units, RatesUsePowersOfTen) {
  EXPECT_EQ(FormatRate(848e9, "FLOP"), "848 GFLOP/s");
  EXPECT_EQ(FormatRate(12.34e9, "B"), "12.3 GB/s");
  EXPECT_EQ(FormatRate(999.9, "B"), "1.00 kB/s");
  EXPECT_EQ(FormatRate(0, "B"), "0.00 B/s");
}

TEST(Units, PercentTakesARatio) {
  EXPECT_EQ(FormatPercent(0.0312), "3.1 %");
  EXPECT_EQ(FormatPercent(-0.0001), "0.0 %");
  EXPECT_EQ(FormatPercentChange(0.11), "+11.0 %");
  EXPECT_EQ(FormatPercentChange(-0.05), "-5.0 %");
  EXPECT_EQ(FormatPercentChange(-0.0001), "+0.0 %");
}

TEST(Units, NamesWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(FormatSeconds(inf), "inf");
  EXPECT_EQ(FormatCount(std::nan("")), "nan");
  EXPECT_EQ(FormatPercent(-inf), "-inf");
  EXPECT_EQ(FormatRate(inf, "B"), "inf");
}

int64_t Size(const char* text) {
  const Result<int64_t> size = ParseSize(text);
  return size.ok() ? *size : -1;
}

TEST(ParseSize, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(Size("1048576"), 1048576);
  EXPECT_EQ(Size("24GB"), 24'000'000'000);
  EXPECT_EQ(Size("24GiB"), int64_t{24} << 30);
  EXPECT_EQ(Size("24 gib"), int64_t{24} << 30);
  EXPECT_EQ(Size("1.5KiB"), 1536);
  EXPECT_EQ(Size("0"), 0);
  EXPECT_EQ(Size("7B"), 7);
  EXPECT_EQ(Size("9007199254740993"), 9007199254740993);  // 2^53 + 1
}

std::string Refusal(const char* text) {
  const Result<int64_t> size = ParseSize(text);
  if (size.ok()) return "accepted";
  EXPECT_EQ(size.status().code(), ErrorCode::kInvalidArgument);
  return size.status().message();
}

TEST(ParseSize, SaysWhatIsWrong) {
  const std::string hint = "; write 24GB (10^9), 24GiB (2^30) or plain bytes";
  EXPECT_EQ(Refusal(""), "size '': is not a number" + hint);
  EXPECT_EQ(Refusal("GB"), "size 'GB': is not a number" + hint);
  EXPECT_EQ(Refusal("inf"), "size 'inf': is not a number" + hint);
  EXPECT_EQ(Refusal("-1"), "size '-1': is negative" + hint);
  EXPECT_EQ(Refusal("24G"), "size '24G': unknown unit 'g'" + hint);
  EXPECT_EQ(Refusal("24GB!"), "size '24GB!': unknown unit 'gb!'" + hint);
  EXPECT_EQ(Refusal("9300000000GB"), "size '9300000000GB': is over 2^63 bytes" + hint);
}

}  // namespace
}  // namespace ridge
