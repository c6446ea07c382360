#include "ridge/runtime/block_adder.h"

#include <gtest/gtest.h>

#include <random>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/core/rounding.h"

namespace ridge {
namespace {

// Values of all types, two of f32 side by side, and one with padding before the next line.
SumBlock Block() {
  return {{{0, 1000, DType::kF32},
           {4032, 16, DType::kF32},
           {4096, 3, DType::kF64},
           {4160, 5, DType::kI64},
           {4224, 2100, DType::kF32}},
          12672};
}

std::vector<std::byte> RandomBlock(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> number(0, 1000);
  const SumBlock block = Block();
  std::vector<std::byte> bytes(static_cast<size_t>(block.bytes));
  for (const SumBlock::Values& values : block.values) {
    for (int64_t i = 0; i < values.elements; ++i)
      StoreFromDouble(values.dtype, bytes.data() + values.offset_bytes, i, number(random));
  }
  return bytes;
}

TEST(BlockAdderTest, AddsTheBitsOfTheHostsSumsInAnyRange) {
  const auto backend = MakeCpuBackend(/*threads=*/1);
  ASSERT_TRUE(backend.ok());
  const SumBlock block = Block();
  for (const ByteRange range : {ByteRange{0, 12672}, {64, 4096}, {4096, 4160}, {4032, 8192}}) {
    const std::vector<std::byte> left = RandomBlock(1);
    std::vector<std::byte> right = RandomBlock(2), want = right;
    AddSums(block, range.begin, range.end, left.data(), want.data(), want.data());
    const auto adder = BlockAdder::Create(**backend, block, {range});
    ASSERT_TRUE(adder.ok()) << adder.status().message();
    ASSERT_TRUE(
        adder->Add((*backend)->device().stream(0), left.data(), right.data(), right.data()).ok());
    for (const SumBlock::Values& values : block.values) {
      const auto begin = static_cast<std::ptrdiff_t>(values.offset_bytes);
      const auto end =
          begin + static_cast<std::ptrdiff_t>(values.elements * BytesPerElement(values.dtype));
      EXPECT_TRUE(std::equal(want.begin() + begin, want.begin() + end, right.begin() + begin))
          << range.begin << " " << values.offset_bytes;
    }
  }
}

TEST(BlockAdderTest, NothingIsPackedThere) {
  const auto backend = MakeCpuBackend(/*threads=*/1);
  ASSERT_TRUE(backend.ok());
  const SumBlock block = {{{0, 16, DType::kF32, /*narrow=*/true}}, 64};
  EXPECT_EQ(BlockAdder::Create(**backend, block, {{0, 64}}).status().message(),
            "--wire bf16 is for memory that the host reaches. hint: --wire f32");
}

}  // namespace
}  // namespace ridge
