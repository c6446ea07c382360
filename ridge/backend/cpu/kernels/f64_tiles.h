// F64 tiles: pointwise arithmetic on tiles of double, for the dtypes that f32 does not hold: f64,
// i64, i32 and results in small integers.
//
// This is the arithmetic of the reference, step by step, so the bits are the reference's too.  What
// is common is vectorized; any other pointwise operator calls its OpDef::elementwise for each
// element.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/graph/op_def.h"

namespace ridge::cpu {

inline constexpr size_t kMostF64Operands = 3;

struct F64Step {
  const OpDef* op = nullptr;
  AttrMap attrs;               // complete
  std::optional<TileOp> tile;  // what TileStepOf() names, if anything
  DType to = DType::kF64;      // the result is rounded to it
  int dst = 0;
  std::array<int, kMostF64Operands> operands = {};
  size_t operand_count = 0;
};

// Runs all steps on the first `count` numbers of each register.
void RunF64Tile(std::span<const F64Step> steps, double* const* registers, int64_t count);

// Elements [at, at + count) as doubles.
void LoadDoubles(DType dtype, const void* from, int64_t at, double* to, int64_t count);
// Rounds floats to the dtype; for integers the numbers must be values of it, as a step leaves them.
void StoreDoubles(DType dtype, const double* from, void* to, int64_t at, int64_t count);

// The vectorized part, f64_tiles_simd.cc.  False when there is no loop for this step or dtype, and
// then nothing was done.
bool RunF64Simd(const F64Step& step, double* const* registers, int64_t count);
bool RoundF64Simd(DType to, double* values, int64_t count);
// These two leave the last `count` modulo 16 elements to the caller.
bool LoadF64Simd(DType dtype, const void* from, double* to, int64_t count);
bool StoreF64Simd(DType dtype, const double* from, void* to, int64_t count);

}  // namespace ridge::cpu
