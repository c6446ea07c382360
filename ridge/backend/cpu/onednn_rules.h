// What oneDNN 3.2 takes under instructions that this CPU may lack, by rules.
//
// The library answers only for instructions that the CPU has, so plans for another CPU ask here.
// Implementations and layouts are those of the library's lists for AVX2 and AVX-512 (bf16 with
// avx512_core_bf16, also where the CPU has matrix units); scratchpads are estimates.
#pragma once
#include <optional>
#include <string>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/core/instructions.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cpu {

// Whether there are rules for numbers of this type under these instructions.
bool HasRules(DType dtype, const InstructionSet& instructions);

enum class ConvPass : uint8_t { kForward, kGradInput, kGradWeight };

// The tensors of a convolution, row-major; weights as oneDNN has them, [G, O, I, ..] in groups.
struct ConvTensors {
  dnnl::memory::desc x, w, y;
};

struct ConvAnswer {
  std::string implementation;  // "jit_1x1:avx512_core"
  ConvTensors wanted;
  int64_t scratchpad_bytes = 0;
};
// REQUIRES: HasRules of the type.
ConvAnswer AnswerConv(ConvPass pass, const ConvGeometry& g, const ConvTensors& tensors,
                      const InstructionSet& instructions, int threads);

// c [rows, columns] = a [rows, depth] b [depth, columns], or so for each matrix of a batch.
struct ProductExtents {
  int64_t rows = 0, depth = 0, columns = 0;
  bool copies_a = false, copies_b = false;  // read transposed
};
struct ProductAnswer {
  std::string implementation;  // "brg:avx512_core"
  dnnl::memory::desc packed;   // b of one matrix, as the kernel likes it
  int64_t scratchpad_bytes = 0;
};
// `b`: one matrix, or a batch, which stays as it is.  REQUIRES: HasRules of the type.
ProductAnswer AnswerProduct(const ProductExtents& e, const dnnl::memory::desc& b,
                            const InstructionSet& instructions, int threads);

// Of kernels without choice: "jit:avx512_core".
std::string JitName(const char* family, DType dtype, const InstructionSet& instructions);

}  // namespace ridge::cpu
