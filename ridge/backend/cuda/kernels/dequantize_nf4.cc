// dequantize_nf4: a thread takes four bytes, that is eight numbers of one block; the last thread
// may have fewer.  The 16 values lie in shared memory, each in a bank of its own.
#include <fmt/format.h>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/nf4.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kDequantizeText = R"cuda(
typedef $R R;
RIDGE_KERNEL void dequantize(const u8* codes, const $S* scales, $T* y) {
  __shared__ R values[16];
  if (threadIdx.x == 0) {
    const R all[16] = {$values};
    for (int k = 0; k < 16; ++k) values[k] = all[k];
  }
  __syncthreads();
  for (i64 group = Thread(); group < $groups; group += Threads()) {
    const R scale = (R)Load(scales, group / 8);
    if (group * 8 + 8 <= $count) {
      const Pack<u8, 4> own = LoadPack<4>(codes, group);
      Pack<$T, 8> pack;
#pragma unroll
      for (int k = 0; k < 8; ++k)
        Store(pack.at, k, values[own.at[k / 2] >> (k % 2 ? 0 : 4) & 15] * scale);
      StorePack(y, group, pack);
      continue;
    }
    for (i64 e = group * 8; e < $count; ++e)
      Store(y, e, values[codes[e / 2] >> (e % 2 ? 0 : 4) & 15] * scale);
  }
}
)cuda";

const char* WriteDequantize(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType& y = call.outputs[0];
  const int64_t groups = CeilDiv(y.elements(), int64_t{8});
  std::vector<std::string> values;
  for (const float value : Nf4Values()) values.push_back(Literal(double{value}));
  text.source = FillText(kDequantizeText, {{"R", ComputeTypeOf(call)},
                                           {"S", StorageType(call.inputs[1].dtype)},
                                           {"T", StorageType(y.dtype)},
                                           {"values", fmt::format("{}", fmt::join(values, ", "))},
                                           {"groups", fmt::format("{}ll", groups)},
                                           {"count", fmt::format("{}ll", y.elements())}});
  text.launches = {{"dequantize",
                    BlocksFor(groups),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Input(1), Argument::Output(0)}}};
  return nullptr;
}

}  // namespace

TextKernelDef DequantizeNf4TextKernel() {
  return {.name = "cuda.dequantize_nf4", .ops = {"dequantize_nf4"}, .write = WriteDequantize};
}

}  // namespace ridge::cuda
