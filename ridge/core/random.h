// Philox4x32-10: counter-based random numbers.
//
// A draw is a pure function of (key, counter), so passes, recomputation, resume and another split
// of the batch draw the same numbers.  Source: Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011; constants from table 2 there.  The tests hold the published known answers.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace ridge {

// One block of four 32-bit words.
std::array<uint32_t, 4> Philox(uint64_t key, std::array<uint32_t, 4> counter);

// How the engine keys its draws: key = (seed, stream), counter = (step, sample, index / 4).
// `stream` is StableHash of the drawing node's or parameter's name.
struct RandomKey {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t step = 0;
};
std::array<uint32_t, 4> DrawBlock(const RandomKey& key, uint32_t sample, uint64_t block);
uint32_t Draw(const RandomKey& key, uint32_t sample, uint64_t index);  // word `index % 4`

// [0, 1) with 24 random bits.
inline float ToUniform(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24F;  // signed: one instruction
}

// Standard normal numbers 4 * block to 4 * block + 3 of a stream (Box-Muller over the words of the
// block).
std::array<double, 4> DrawNormalBlock(const RandomKey& key, uint32_t sample, uint64_t block);

// Many at a time: `blocks` blocks, a multiple of kDrawBlocks.
inline constexpr int64_t kDrawBlocks = 8;
// The blocks' words, four each.
void DrawWords(const RandomKey& key, uint32_t sample, uint64_t first_block, int64_t blocks,
               uint32_t* words);
// DrawNormalBlock() of each.  The last bits of the doubles depend on the instruction set (fused
// multiply-add or not).
void DrawNormals(const RandomKey& key, uint32_t sample, uint64_t first_block, int64_t blocks,
                 double* numbers);
// 2 ToUniform(word) - 1 for each word: uniform in [-1, 1).
void DrawSymmetricUniforms(const RandomKey& key, uint32_t sample, uint64_t first_block,
                           int64_t blocks, double* numbers);

// FNV-1a folded to 32 bits: the same on every machine and in every version.
uint32_t StableHash(std::string_view text);

}  // namespace ridge
