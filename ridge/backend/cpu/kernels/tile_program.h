// TileProgram: pointwise arithmetic on tiles that stay in the L1 cache.
//
// A register is a tile of floats; a step computes one register from up to three others.  Truth
// values are 1 and 0.  The steps of one tile run before the next tile is touched, so intermediate
// values never reach memory.  Narrow floats are computed in f32 and rounded after each step.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/core/dtype.h"
#include "ridge/graph/attributes.h"

namespace ridge::cpu {

// Floats of a tile: sixteen registers of 2 KiB fill an L1 cache of 32 KiB, and loops stay long.
inline constexpr int64_t kTileSize = 512;
// Registers are this far apart: at a multiple of 4 KiB the same elements of all of them would
// compete for the eight ways of one cache set.
inline constexpr int64_t kRegisterStride = kTileSize + 32;

// kCopy, kToBool, ...: a row each in tile_steps.def.
enum class TileOp : uint8_t {
#define RIDGE_TILE_STEP(Name, ...) k##Name,
#include "ridge/backend/cpu/kernels/tile_steps.def"
};

struct TileStep {
  TileOp op;
  int dst = 0;
  int a = 0, b = 0, c = 0;  // operands; unused ones are 0
  float p = 0, q = 0;       // alpha, beta; min, max
};

// The tile operation of an operator with these attributes, whose result has dtype `to`; nullopt
// when there is none.  Fills op, p and q.
std::optional<TileStep> TileStepOf(const std::string& op, const AttrMap& attrs, DType to);

// As many elements as whole vectors hold, converted and rounded; returns how many: 0 for a dtype
// without a loop.
int64_t LoadVectors(DType dtype, const void* from, float* to, int64_t count);
int64_t StoreVectors(DType dtype, const float* from, void* to, int64_t count);
// All of a row of bf16.
void WidenRow(const uint16_t* from, int64_t count, float* to);
void RoundRow(const float* from, int64_t count, uint16_t* to);

// Runs all steps on the first `count` floats of each register.
void RunTile(std::span<const TileStep> steps, float* const* registers, int64_t count);

}  // namespace ridge::cpu
