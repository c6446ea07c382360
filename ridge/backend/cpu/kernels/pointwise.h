// PointwiseProgram: a pointwise operator or a `fused` expression, compiled to tile steps.
//
// Compiled once, at plan time (to know whether we can, and the workspace) and at Create.
#pragma once
#include <optional>
#include <vector>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/f64_tiles.h"
#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/graph/expression.h"

namespace ridge::cpu {

// How the elements of one input meet those of the output.
enum class Spread : uint8_t { kFull, kScalar, kBroadcast };

struct TileInput {
  DType dtype = DType::kF32;
  Spread spread = Spread::kFull;
  int reg = 0;
  Dims strides;  // kBroadcast: over PointwiseProgram::dims, in elements
};

struct TileOutput {
  DType dtype = DType::kF32;
  int reg = 0;
  bool direct = false;  // the register is the output's memory
};

// The last block of channels is only partly used: its other lanes are computed with the rest and
// then set to 0, as every kernel expects them.
struct PaddedBlocks {
  int64_t block = 1, blocks = 1;
  int64_t used = 1;   // lanes of the last block that are channels
  int64_t image = 1;  // pixels
  bool any() const { return used < block; }
  // Of the block of lanes that begins at this element.
  int64_t LanesAt(int64_t element) const {
    return element / block / image % blocks == blocks - 1 ? used : block;
  }
};

struct PointwiseProgram {
  Dims dims;             // of the outputs, merged where every broadcast input allows it
  int64_t elements = 0;  // with those of padded blocks
  PaddedBlocks padding;
  std::vector<TileInput> inputs;
  bool wide = false;  // registers are doubles and wide_steps are run, else floats and steps
  std::vector<TileStep> steps;
  std::vector<F64Step> wide_steps;
  std::vector<TileOutput> outputs;
  int registers = 0;
  // By output, whether it may share an input's memory: no step reads an input once the output is
  // written.
  std::vector<bool> output_may_overwrite;

  int64_t tile_size() const;
  int64_t workspace_bytes(int threads) const {
    return threads * registers * kRegisterStride * (wide ? 8 : 4);
  }
};

// `block`: channels of the blocked layout of all full-size tensors, 1 for row-major.  In f32 where
// that holds every value, else in double.  On failure the reason is one of refusal::*.
std::optional<PointwiseProgram> CompilePointwise(const OpDef& op, const OpCall& call, int64_t block,
                                                 const char*& reason);

}  // namespace ridge::cpu
